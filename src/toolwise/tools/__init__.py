"""What can be called."""

from toolwise.tools.calculator import CALCULATOR
from toolwise.tools.calendar import CALENDAR
from toolwise.tools.registry import Registry, tool

__all__ = ["CALCULATOR", "CALENDAR", "Registry", "tool"]
