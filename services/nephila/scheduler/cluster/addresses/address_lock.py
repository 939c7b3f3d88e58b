"""One scheduler's turns at server addresses: what it claims, holds, passes on, and says of it. Pure.

Nothing starts on an address but while this scheduler is first there in the book (`turnbook`). Who is alone says
nothing and holds everything. One that nobody else wants is kept, also while its hosts rest; one that somebody waits
for is passed on after SLICE_S, or at once when no host here waits for it, and never before all that has been started
is on its way: a start that comes late would come in another's turn. Who begins, or comes back, asks first, and waits
until the owners of all partitions have said what they hold and what is in flight.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Protocol

from nephila.kernel.messages import AddressBusy, AddressPassed, AddressWord, PartitionOwned
from nephila.scheduler.cluster.addresses.address_claims import SILENT_S, Changes, TurnBook, Who

log = logging.getLogger(__name__)

SLICE_S = 3.0
"""A turn where others wait: 12 fetches at a gap of 0.25 s."""
KEEP_S = 60.0
"""An address without a fetch for so long is let go: hosts that rest longer claim it anew each time."""
LIFE_S = 10.0
"""A word comes at least so often."""
UNHEARD_S = 0.75 * SILENT_S
"""Whose own words do not come back for so long begins anew, before others take it for gone."""
CLAIMS_PER_WORD = 5000
"""Some 100 KiB of addresses."""


class Here(Protocol):
    """What is known of addresses in this program."""

    def in_flight(self, address: str) -> int:
        """Fetches that were started and have not ended."""

    def wait_s(self, address: str, now: float) -> float:
        """Seconds until the gap after the last start is over."""

    def delay_until(self, address: str, until: float) -> None:
        """Nothing starts there before."""

    def gap_s(self, address: str) -> float:
        """Seconds between two starts there."""

    def has_line(self, address: str) -> bool:
        """Whether a host waits for it."""

    def in_use(self) -> Iterable[str]:
        """Addresses with a fetch, a gap or a line."""

    def mark(self) -> Callable[[], bool]:
        """Asked later: whether everything that was started by now is on its way."""


class Hold:
    """A claim."""

    __slots__ = ("since", "started", "used")

    def __init__(self, now: float) -> None:
        self.since = now
        """When it became the first."""
        self.used = now
        self.started = False
        """Something was, in this turn."""


class Turns:
    """See the module. Operations are O(1), `say` that of addresses that others wait for."""

    def __init__(self, member: str, life: int, partitions: int, here: Here) -> None:
        self.me: Who = (member, life)
        self.book = TurnBook(partitions)
        self.synced = False
        """What others hold is known."""
        self.told = 0
        """Entries said, for figures."""
        self._here = here
        self._own: dict[int, int] = {}
        """Partition → epoch, of those that are here."""
        self._untold: set[int] = set()
        self._hello = False
        """It is to be said, or was."""
        self._said_hello = False
        self._asked_at = 0.0
        self._answer = False
        """Somebody has asked."""
        self._alone = False
        self._wanted: dict[str, None] = {}
        self._mine: dict[str, Hold] = {}
        """Claims that were said."""
        self._first: OrderedDict[str, Hold] = OrderedDict()
        """Of them those that are first, the longest unused at the front."""
        self._contested: set[str] = set()
        self._passing: dict[str, Callable[[], bool]] = {}
        """Addresses where nothing starts any more, and whether all that did is on its way."""
        self._passed: set[str] = set()
        """Addresses that were passed on with a word that has not come back yet."""
        self._busy: dict[str, int] = {}
        """Address that others may have → fetches in flight there, as they were said last."""
        self._said_at = float("-inf")
        self._read_at = float("-inf")
        """When a word of its own came back last."""

    # ---- partitions

    def own(self, partition: int, epoch: int) -> None:
        """A partition is here from now on, with what its owner before had in flight."""
        if not self._own:
            self._begin_anew()
        self._own[partition] = epoch
        self._untold.add(partition)

    def disown(self, partition: int) -> None:
        """It is another's, or nobody's."""
        self._own.pop(partition, None)
        self._untold.discard(partition)

    def knows(self, partition: int, epoch: int) -> bool:
        """Whether all have heard that it is here: before that nothing may be handed out."""
        return self.book.owners.get(partition) == (epoch, self.me)

    def is_past(self, partition: int, epoch: int) -> bool:
        """Whether a later owner has told what is in flight for it."""
        return self.book.owners.get(partition, (-1, self.me))[0] > epoch

    def _begin_anew(self) -> None:
        """Others may have taken this scheduler for gone: it is another one to them."""
        self.me = (self.me[0], self.me[1] + 1)
        self._untold.update(self._own)
        self._wanted = {address: None for address in self._here.in_use() if self._here.has_line(address)}
        self.book.stop()
        self.synced = self._alone = self._said_hello = self._answer = False
        self._hello = True
        self._mine.clear()
        self._first.clear()
        self._contested.clear()
        self._passing.clear()
        self._passed.clear()
        self._busy.clear()

    # ---- what may be done

    def held(self, address: str) -> bool:
        """Whether a fetch may start there as far as other schedulers go."""
        return self._alone or (address in self._first and address not in self._passing)

    @property
    def held_now(self) -> int:
        """Addresses at which it is this scheduler's turn; who is alone does not count them."""
        return len(self._first)

    def others(self, address: str) -> int:
        """Fetches of others in flight there."""
        return self.book.others(address, self.me)

    def want(self, address: str) -> None:
        """A host waits for it."""
        if not self._alone and address not in self._mine:
            self._wanted[address] = None

    def used(self, address: str, now: float) -> None:
        """A fetch starts there."""
        hold = self._first.get(address)
        if hold is not None:
            hold.used, hold.started = now, True
            self._first.move_to_end(address)

    # ---- what is heard

    def take(self, word: AddressWord, now: float) -> set[str]:
        """The next word of the topic; returns the addresses at which there may be room now."""
        mine = (word.member, word.life) == self.me
        if mine:
            self._read_at = now
            self._passed.difference_update(one.address for one in word.passed)
        if mine and word.hello and not self.book.reading:
            self.book.begin()
            self._asked_at = now
        elif word.hello and not mine:
            self._answer = bool(self._own)
        return self._changed(self.book.take(word, now), now)

    def drop_silent(self, now: float) -> set[str]:
        """See `TurnBook.drop_silent`; to be called now and then."""
        changes = self.book.drop_silent(now, self.me)
        if changes.gone:
            # What was not said, or did not count, for a later owner who is gone.
            self._untold.update(partition for partition, epoch in self._own.items() if not self.knows(partition, epoch))
        return self._changed(changes, now)

    def _changed(self, changes: Changes, now: float) -> set[str]:
        if self.me in changes.gone and self._own:
            self._begin_anew()  # what it has by now is not known to others yet
        for address in changes.orphaned:
            self._here.delay_until(address, now + self._here.gap_s(address))
        look = self._look_at_all(now)
        for address in changes.addresses:
            if self._look_at(address, now) and self.book.rests.get(address, now) > now:
                self._here.delay_until(address, self.book.rests[address])
        return changes.addresses | look

    def _look_at_all(self, now: float) -> set[str]:
        """Whether it is known by now who holds what, and whether anybody else is there."""
        if not self.synced and (self.book.whole or self._waited_enough(now)):
            self.synced = True
        alone = self.synced and self.book.is_alone(self.me)
        if alone == self._alone:
            return set()
        self._alone = alone
        in_use = set(self._here.in_use())
        if not alone:
            # All of it is this scheduler's; the newcomer waits until it has heard so.
            for address in in_use:
                self._mine[address] = self._first[address] = Hold(now)
                self.book.claims[address] = [self.me]
            self._answer = True
            return set()
        self._mine.clear()
        self._first.clear()
        self._contested.clear()
        self._wanted.clear()
        self._passing.clear()
        self._passed.clear()
        self._busy.clear()
        self.book.claims.clear()
        return in_use

    def _waited_enough(self, now: float) -> bool:
        if not self.book.reading or now < self._asked_at + SILENT_S:
            return False
        log.warning("not all partitions have a scheduler that tells its server addresses; going on without them")
        return True

    def _look_at(self, address: str, now: float) -> bool:
        """Take up who is first there; True when it is this scheduler since now."""
        hold = self._mine.get(address)
        if hold is None:
            return False
        claims = self.book.claims.get(address, [])
        is_first = bool(claims) and claims[0] == self.me and address not in self._passed
        (self._contested.add if is_first and len(claims) > 1 else self._contested.discard)(address)
        if is_first == (address in self._first):
            return False
        if is_first:
            hold.since = hold.used = now
            hold.started = False
            self._first[address] = hold
        else:
            self._first.pop(address)
        return is_first

    # ---- what is said

    @property
    def stirs(self) -> bool:
        """Whether there is something to say, or will be as time passes; LIFE_S apart."""
        return bool(
            self._untold or self._answer or self._wanted or self._contested or self._passing or self._busy
        ) and bool(self._own)

    def say(self, now: float) -> list[AddressWord]:
        """What to publish, in this order."""
        if not self._own:
            return []
        if self._said_hello and now > max(self._read_at, self._asked_at) + UNHEARD_S:
            self._begin_anew()  # others may take it for gone
        if self._said_hello and not self.book.reading:
            return []
        word = AddressWord(*self.me)
        more = self._about_itself(word, now)
        if not self._alone and self.synced:
            self._pass_on(word, now)
            self._claim(word)
        self._tell_busy(word)
        empty = not (word.hello or word.owns or word.claims or word.passed or word.busy)
        if empty and now < self._said_at + LIFE_S:
            return more
        self._said_at = now
        self.told += len(word.claims) + len(word.passed) + len(word.busy)
        # Claims that are repeated come before the partitions: with those everything has been said.
        return [*more, word]

    def _about_itself(self, word: AddressWord, now: float) -> list[AddressWord]:
        more = []
        if self._hello:
            word.hello, self._hello, self._said_hello = True, False, True
            self._asked_at = now
        elif self._answer:
            claims = list(self._mine)
            self._untold.update(self._own)
            pieces = range(0, len(claims), CLAIMS_PER_WORD)
            more = [AddressWord(*self.me, claims=claims[at : at + CLAIMS_PER_WORD]) for at in pieces]
        self._answer = False
        owners = self.book.owners
        for partition in sorted(self._untold):
            epoch = self._own[partition]
            if owners.get(partition, (-1, self.me))[0] <= epoch:
                word.owns.append(PartitionOwned(partition, epoch))
        if word.owns:
            self._note_busy()
        self._untold.clear()
        return more

    def _note_busy(self) -> None:
        """What is in flight where others may fetch is said with the partitions it belongs to."""
        for address in self._here.in_use():
            if address not in self._first and self._here.in_flight(address):
                self._busy[address] = 0

    def _claim(self, word: AddressWord) -> None:
        for address in self._wanted:
            if address not in self._mine:
                self._mine[address] = Hold(0.0)
                word.claims.append(address)
        self._wanted.clear()

    def _pass_on(self, word: AddressWord, now: float) -> None:
        mark = None
        for address in [*self._contested, *self._unused(now)]:
            if address not in self._passing and (address not in self._contested or self._is_over(address, now)):
                mark = mark or self._here.mark()
                self._passing[address] = mark
        for address in [address for address, is_out in self._passing.items() if is_out()]:
            del self._passing[address]
            word.passed.append(self._pass(address, now))

    def _unused(self, now: float) -> list[str]:
        """Those that nobody needed for a while."""
        found = []
        while self._first:
            address, hold = next(iter(self._first.items()))
            if hold.used + KEEP_S > now:
                break
            if not self._here.has_line(address) and not self._here.wait_s(address, now):
                found.append(address)
            hold.used = now
            self._first.move_to_end(address)
        return found

    def _is_over(self, address: str, now: float) -> bool:
        hold = self._first[address]
        if not self._here.has_line(address):
            return True
        slice_s = SLICE_S if hold.started else 4 * max(SLICE_S, self._here.gap_s(address))
        return now >= hold.since + slice_s

    def _pass(self, address: str, now: float) -> AddressPassed:
        """It is no longer this scheduler's; in the book with the word."""
        again = self._here.has_line(address)
        if not again:
            self._mine.pop(address, None)
        self._first.pop(address, None)
        self._contested.discard(address)
        self._passed.add(address)
        busy = self._here.in_flight(address)
        if busy:
            self._busy[address] = busy
        return AddressPassed(address, self._here.wait_s(address, now), again, busy)

    def _tell_busy(self, word: AddressWord) -> None:
        """Fetches that have ended make room for others."""
        for address, said in list(self._busy.items()):
            count = self._here.in_flight(address)
            if address in self._first or not count:
                del self._busy[address]
                count = 0
            else:
                self._busy[address] = count
            if count != said:
                word.busy.append(AddressBusy(address, count))
