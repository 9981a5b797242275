"""What the add-on would do to the settings of a crawl, tried on a copy of them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from scrapy.exceptions import NotConfigured
from scrapy.utils.misc import load_object

from scrapy_frontier.report.doctor import Rehearsal

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

PACKAGE: Final = "scrapy_frontier"


def rehearse(settings: BaseSettings) -> Rehearsal | None:
    """Whether the wiring works out, and what is warned of; None where the add-on is not in `ADDONS`."""
    addon = _addon(settings)
    if addon is None:
        return None
    heard = _Heard()
    logger = logging.getLogger(PACKAGE)
    logger.addHandler(heard)
    try:
        addon().update_settings(settings.copy())
    except NotConfigured as reason:
        return Rehearsal(off=str(reason), warnings=tuple(heard.warnings))
    except Exception as error:
        return Rehearsal(error=str(error), warnings=tuple(heard.warnings))
    finally:
        logger.removeHandler(heard)
    return Rehearsal(warnings=tuple(heard.warnings))


def _addon(settings: BaseSettings) -> Any:
    """The frontier's add-on, as the settings name it."""
    for named in settings.getdict("ADDONS"):
        found = load_object(named) if isinstance(named, str) else named
        if getattr(found, "__module__", "").startswith(f"{PACKAGE}."):
            return found
    return None


class _Heard(logging.Handler):
    """Keeps what is warned of."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.warnings: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.warnings.append(record.getMessage())
