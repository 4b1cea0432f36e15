"""Values of a filter are compared as JSON."""

from pizzabot_builtin_plugins.http_server.body_fields import same_json


def test_true_is_not_one_and_the_order_of_keys_counts_for_nothing():
    assert not same_json(True, 1)
    assert not same_json([0], [False])
    assert same_json({"a": 1, "b": [None]}, {"b": [None], "a": 1})
