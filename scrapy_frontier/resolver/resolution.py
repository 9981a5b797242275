"""One question of one request, and the delivery of its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Protocol

import attr
from twisted.internet.interfaces import IHostResolution
from zope.interface import implementer  # type: ignore[import-untyped]

from scrapy_frontier.logs import get_logger
from scrapy_frontier.resolver.answers import Address

logger = get_logger(__name__)


class Receiver(Protocol):
    """Who wants to know: Twisted's `IResolutionReceiver`, which type checkers cannot read."""

    def resolutionBegan(self, resolutionInProgress: Resolution) -> None:  # noqa: N802, N803
        """The question is asked."""

    def addressResolved(self, address: Address) -> None:  # noqa: N802
        """An address of the host."""

    def resolutionComplete(self) -> None:  # noqa: N802
        """That was all."""


class Timer(Protocol):
    """A call that is to come: Twisted's `IDelayedCall`."""

    def active(self) -> bool:
        """Whether it is still to come."""

    def cancel(self) -> None:
        """Do not call."""


@implementer(IHostResolution)
class Resolution:
    """Answered once: by addresses, by none when nothing came in time, or not at all when it was cancelled.

    `port`, `types` (None: all) and `transport` say what the addresses are wanted for; the answer itself holds for any.
    """

    def __init__(
        self,
        receiver: Receiver,
        name: str,
        port: int,
        types: Sequence[type[Address]] | None,
        transport: str,
    ) -> None:
        self.name = name
        self._receiver = receiver
        self._port = port
        self._types = None if types is None else tuple(types)
        self._transport: Literal["TCP", "UDP"] = "UDP" if transport == "UDP" else "TCP"
        self._timer: Timer | None = None
        self._is_done = False
        receiver.resolutionBegan(self)

    def __repr__(self) -> str:
        return f"<Resolution of {self.name}, {'done' if self._is_done else 'waiting'}>"

    def end_in(self, call_later: Callable[..., Timer], timeout_s: float) -> None:
        """Answer without an address after so many seconds."""
        self._timer = call_later(timeout_s, self.answer, ())

    def cancel(self) -> None:
        """Deliver nothing any more."""
        self._finish()

    def answer(self, addresses: Iterable[Address]) -> None:
        """Deliver the addresses that are wanted, unless it is done."""
        if self._is_done:
            return
        self._finish()
        try:
            for address in addresses:
                if self._types is None or isinstance(address, self._types):
                    self._receiver.addressResolved(
                        attr.evolve(address, type=self._transport, port=self._port)
                    )
            self._receiver.resolutionComplete()
        except Exception:  # one receiver's fault must not keep the answer from the others
            logger.exception(
                "The addresses of %s could not be delivered",
                self.name,
                extra={"action": "dns_receiver_failed"},
            )

    def _finish(self) -> None:
        self._is_done = True
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
