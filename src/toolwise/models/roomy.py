"""A layer of a key-value cache with room to spare, whose columns can be chosen anew."""

from __future__ import annotations

import torch
from transformers.cache_utils import DynamicLayer

Pair = tuple[torch.Tensor, torch.Tensor]

_SPARE = 256  # columns more than a quarter, for a small cache


class RoomyLayer(DynamicLayer):  # type: ignore[misc]  # transformers has no types
    """A cache layer that grows by a quarter, so that one token more does not copy all that stand before it."""

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        super().lazy_initialization(key_states, value_states)
        self._room = (key_states[..., :0, :], value_states[..., :0, :])
        self.cut(0)

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object) -> Pair:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        begun, end = self.keys.shape[-2], self.keys.shape[-2] + key_states.shape[-2]
        if end > self._room[0].shape[-2]:
            room = end + end // 4 + _SPARE
            self._room = (_wider(self._room[0], begun, room), _wider(self._room[1], begun, room))
        self._room[0][..., begun:end, :] = key_states
        self._room[1][..., begun:end, :] = value_states
        self.cut(end)
        return self.keys, self.values

    def cut(self, length: int) -> None:
        self.keys, self.values = self._room[0][..., :length, :], self._room[1][..., :length, :]

    @torch.inference_mode()
    def select(self, columns: torch.Tensor) -> None:
        """Keep these columns only, in this order."""
        chosen = columns.to(self.keys.device)
        self._room = (self.keys.index_select(-2, chosen), self.values.index_select(-2, chosen))
        self.cut(len(columns))


def _wider(tensor: torch.Tensor, used: int, room: int) -> torch.Tensor:
    wider = tensor.new_empty((*tensor.shape[:-2], room, tensor.shape[-1]))
    wider[..., :used, :] = tensor[..., :used, :]
    return wider
