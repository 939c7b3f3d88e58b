"""No test may leave a slot in use."""

from tests.downloader.conftest import all_slots_are_free_at_the_end  # noqa: F401 - a fixture of all tests here
