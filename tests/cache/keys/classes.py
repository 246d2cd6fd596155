"""Classes whose values stand in signatures and snapshots."""
import dataclasses
import enum
from collections import namedtuple

Point = namedtuple("Point", "mu sd")


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2


class Level(enum.IntEnum):
    LOW = 1


@dataclasses.dataclass(frozen=True)
class Settings:
    mode: str
    sizes: object = (1, 2)
