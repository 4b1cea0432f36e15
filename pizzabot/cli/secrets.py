"""`pizzabot secrets set|list|delete`. A value comes from a prompt or standard input, never from the command line.

Every process of the machine can read a command line.
"""

from __future__ import annotations

import getpass
import os
import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from pizzabot.cli.arguments import add_action, add_settings_options, settings_of
from pizzabot.cli.context import load_plugins, make_context
from pizzabot.cli.exit_codes import ExitCode
from pizzabot.cli.redaction import process_redactor
from pizzabot.cli.streams import NotText, read_text, text_of
from pizzabot_hookspecs.errors import InvalidRequest, NotFound, PizzabotError, TooLarge
from pizzabot_hookspecs.secret_stores import WritableSecretStore
from pizzabot_hookspecs.support.references import Reference, find_references, parse_reference

if TYPE_CHECKING:
    from pizzabot.kernel import Plugins
    from pizzabot.settings import SecretResolver, Settings
    from pizzabot_hookspecs.secret_stores import SecretStore

MAX_VALUE_CHARS = 64 * 1024
"""A private key has a few thousand characters."""


def arguments(parser: ArgumentParser) -> None:
    add_settings_options(parser)
    actions = parser.add_subparsers(dest="action", required=True, metavar="set|list|delete")
    setting = add_action(actions, "set", "keep a secret; its value is asked for, or read from standard input")
    deleting = add_action(actions, "delete", "remove a secret from a store")
    for action in (setting, deleting):
        action.add_argument("name", metavar="NAME")
        action.add_argument(
            "--store", default="keyring", help="keyring (default), file, or another store that keeps secrets"
        )
    add_action(actions, "list", "list the secrets that the configuration refers to, and whether they are set")


def run(arguments: Namespace) -> int:
    settings = settings_of(arguments)
    plugins = load_plugins(settings)
    if arguments.action == "list":
        return _list(settings, plugins)
    reference = parse_reference({arguments.store: arguments.name}, keys={arguments.store})
    store = _writable(settings, plugins, arguments.store)
    if arguments.action == "delete":
        if not store.delete(arguments.name):
            raise NotFound("no_such_secret", f"secret {reference} is not there: nothing was deleted")
        print(f"deleted {reference}")
        return ExitCode.OK
    value = _read_value(arguments.name)
    process_redactor().add(value)
    store.set(arguments.name, value)
    print(f"set {reference}")
    return ExitCode.OK


def _writable(settings: Settings, plugins: Plugins, name: str) -> WritableSecretStore:
    store = _open(settings, plugins, name)
    if not isinstance(store, WritableSecretStore):
        raise InvalidRequest(
            "store_read_only", f'the store "{name}" keeps no secrets; use --store keyring or --store file'
        )
    return store


def _open(settings: Settings, plugins: Plugins, name: str) -> SecretStore:
    """As `plugins.create` makes it: a store that cannot be made is an error here."""
    from typing import cast

    from pizzabot.settings import SecretResolver

    record = plugins.choose("secret_stores", name)
    resolver = SecretResolver(process_redactor())
    made = plugins.create(
        record,
        use=name,
        section=settings.section("secrets", name),
        context=lambda use, inner: make_context(settings, use, inner, resolver),
    )
    return cast("SecretStore", made)


def _read_value(name: str) -> str:
    """From a prompt that does not echo, or the whole of standard input; one line end at its end is not part of it."""
    prompted = sys.stdin.isatty()
    try:
        value = (
            text_of(getpass.getpass(f"value of {name}: ")) if prompted else read_text(sys.stdin, MAX_VALUE_CHARS + 1)
        )
    except NotText as error:
        raise InvalidRequest("secret_not_text", f"the value of {name} cannot be kept: {error}") from None
    value = value.removesuffix("\n").removesuffix("\r")
    if not value.strip():
        raise InvalidRequest("empty_secret", f"no value was given for {name}: nothing was set")
    if len(value) > MAX_VALUE_CHARS:
        raise TooLarge("secret_too_large", f"the value of {name} has more than {MAX_VALUE_CHARS} characters")
    return value


def _list(settings: Settings, plugins: Plugins) -> int:
    """Names and whether they are set, never a value. What the file store holds beyond the references is listed, too."""
    from pizzabot.cli.context import secrets_of

    resolver = secrets_of(settings, plugins)
    found = {reference: path for path, reference in find_references(settings.merged.values, keys=resolver.keys)}
    for reference, path in sorted(found.items(), key=lambda item: str(item[0])):
        where = ".".join(str(part) for part in path)
        print(f"{reference}  {_state(resolver, reference)}  used by {where}")
    kept = _kept_in_file(settings, plugins)
    for name in sorted(kept - {reference.name for reference in found if reference.key == "file"}):
        print(f"{Reference('file', name)}  set  not used by the configuration")
    if not found and not kept:
        print("no secrets: the configuration refers to none, and the file store holds none")
    return ExitCode.OK


def _state(secrets: SecretResolver, reference: Reference) -> str:
    try:
        secrets.resolve(reference)
    except PizzabotError as error:
        return "not set" if error.code == "unset_secret" else f"cannot be looked up ({error.detail})"
    return "set"


def _kept_in_file(settings: Settings, plugins: Plugins) -> set[str]:
    names = getattr(_open(settings, plugins, "file"), "names", None)
    return set(names()) if callable(names) and os.path.lexists(settings.data_root) else set()
