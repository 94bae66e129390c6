"""The hours in which moves may begin."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, time
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from rebalance_lib.errors import InvalidInputError

_WINDOW = re.compile(r"(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})(?: (\S+))?")


@dataclass(frozen=True, slots=True)
class Window:
    """The hours of a day in which moves may begin; it may go past midnight.

    Example: ``22:00-06:00 Europe/Berlin``; without a zone, hours are UTC.
    """

    begin: time
    end: time
    zone: str = "UTC"

    @classmethod
    def parse(cls, text: str) -> Window:
        """Read it as a person writes it."""
        match = _WINDOW.fullmatch(text.strip())
        try:
            if match is None:
                raise ValueError("it is not HH:MM-HH:MM")
            begin_hour, begin_minute, end_hour, end_minute = (int(match[place]) for place in range(1, 5))
            window = cls(time(begin_hour, begin_minute), time(end_hour, end_minute), match[5] or "UTC")
            ZoneInfo(window.zone)
        except (ValueError, OSError, ZoneInfoNotFoundError) as error:
            raise InvalidInputError(
                f"the window {text!r} cannot be read ({error}): write it as 22:00-06:00 or 22:00-06:00 Europe/Berlin"
            ) from error
        if window.begin == window.end:
            raise InvalidInputError(f"the window {text!r} is empty: leave it out to move at any time")
        return window

    def contains(self, moment: datetime) -> bool:
        """Whether moves may begin at this moment."""
        now = moment.astimezone(ZoneInfo(self.zone)).time()
        if self.begin < self.end:
            return self.begin <= now < self.end
        return now >= self.begin or now < self.end

    def __str__(self) -> str:
        return f"{self.begin:%H:%M}-{self.end:%H:%M} {self.zone}"
