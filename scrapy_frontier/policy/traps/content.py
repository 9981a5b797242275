"""What a fetched page brought, as the rules about traps see it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Content:
    """The content of one page: `family` is that of its URL.

    `is_read`: whether its text was looked at. `is_judged`: whether that is long enough to be told from others.
    `is_same`, `is_exact`, `is_near`: whether the origin has had the same text before, the same but for what repeats
    its own address, or nearly the same; `like` is the URL of that page. `novelty` is the share of its phrases that the
    origin had not had before.
    """

    family: tuple[str, str]
    digest: int = 0
    is_read: bool = False
    is_judged: bool = False
    is_same: bool = False
    is_exact: bool = False
    is_near: bool = False
    novelty: float = 1.0
    like: str = ""

    @property
    def is_copy(self) -> bool:
        """Whether it is the same text again, and long enough to mean something."""
        return self.is_judged and self.is_exact

    def is_dry(self, tolerance: float | None) -> bool:
        """Whether the text brought nothing new.

        `tolerance`: for a suspicious family, the share of new phrases that counts for nothing; there a text that is
        too short to judge brings nothing either. None: the whole text has to be the same, to the word.
        """
        if tolerance is None:
            return self.is_judged and self.is_same
        if not self.is_judged:
            return True
        return self.is_exact or self.is_near or self.novelty <= tolerance
