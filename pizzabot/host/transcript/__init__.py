"""The transcript: what a person has seen, folded from a thread's log (spec/12 §0 and §1.1).

    state = fold(initial(), map(entry_of_event, events))
    page(state, thread_id="dinner", limit=20)

Everything here is pure. `tests/wire/fold/` has vectors that the fold of the page, in TypeScript, passes too.
"""

from pizzabot.host.transcript.entries import Entry as Entry
from pizzabot.host.transcript.entries import entry_of_event as entry_of_event
from pizzabot.host.transcript.entries import entry_of_frame as entry_of_frame
from pizzabot.host.transcript.fold import apply as apply
from pizzabot.host.transcript.fold import fold as fold
from pizzabot.host.transcript.pages import ItemsPage as ItemsPage
from pizzabot.host.transcript.pages import Page as Page
from pizzabot.host.transcript.pages import page as page
from pizzabot.host.transcript.pages import turn_items as turn_items
from pizzabot.host.transcript.paths import turns_of_page as turns_of_page
from pizzabot.host.transcript.rows import rows_of as rows_of
from pizzabot.host.transcript.rows import state_from_rows as state_from_rows
from pizzabot.host.transcript.rows import summary_of as summary_of
from pizzabot.host.transcript.rows import turns_of_events as turns_of_events
from pizzabot.host.transcript.rows import unsettled_turns as unsettled_turns
from pizzabot.host.transcript.shapes import Item as Item
from pizzabot.host.transcript.shapes import RunRecord as RunRecord
from pizzabot.host.transcript.shapes import State as State
from pizzabot.host.transcript.shapes import Turn as Turn
from pizzabot.host.transcript.shapes import initial as initial
from pizzabot.host.transcript.windows import from_page as from_page
from pizzabot.host.transcript.windows import merge_items as merge_items
from pizzabot.host.transcript.windows import merge_page as merge_page
