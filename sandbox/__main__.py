"""``python -m sandbox``: a real Kafka cluster on loopback from the command line."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from typing import NoReturn

import click

from sandbox.cluster import Sandbox, SandboxError

DIRECTORY = click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path),
    default=Path(".local/sandbox"),
    show_default=True,
    help="Where the sandbox keeps its configuration, data and logs.",
)
BROKERS = click.option("--brokers", type=click.IntRange(1), default=3, show_default=True, help="Brokers to start.")
RACKS = click.option("--racks", type=click.IntRange(0), default=3, show_default=True, help="Racks; 0 for none.")
CONTROLLERS = click.option("--controllers", type=click.IntRange(1), default=1, show_default=True, help="Controllers.")
NODE = click.argument("node", type=int)


def say(text: str) -> None:
    """Progress goes to standard error: standard output is for what a script reads."""
    click.echo(text, err=True)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Run a real Kafka cluster on loopback.

    \b
    python -m sandbox up --brokers 3        start it and leave it running; prints the bootstrap servers
    python -m sandbox add                   one more, empty broker
    python -m sandbox kill 2                SIGKILL broker 2 (also: pause, resume, restart)
    python -m sandbox status                who runs, on which port and rack
    python -m sandbox down                  stop everything and remove the data
    """  # noqa: D301 - \b is click's mark for text that is not to be wrapped


@main.command()
@DIRECTORY
@BROKERS
@RACKS
@CONTROLLERS
def up(directory: Path, brokers: int, racks: int, controllers: int) -> None:
    """Start a cluster and leave it running."""
    sandbox = Sandbox(directory, brokers=brokers, racks=racks, controllers=controllers, progress=say)
    click.echo(sandbox.start(detached=True).bootstrap_servers)


@main.command()
@BROKERS
@RACKS
@CONTROLLERS
def run(brokers: int, racks: int, controllers: int) -> None:
    """Start a cluster in the foreground; Ctrl-C stops it and removes everything."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job begins with it ignored
    with Sandbox(brokers=brokers, racks=racks, controllers=controllers, progress=say) as sandbox:
        click.echo(sandbox.bootstrap_servers)
        say("running; Ctrl-C stops it")
        while True:
            time.sleep(3600)


@main.command()
@DIRECTORY
@click.option("--count", type=click.IntRange(1), default=1, show_default=True, help="How many.")
@click.option("--rack", help="Their rack; by default the racks take turns.")
def add(directory: Path, count: int, rack: str | None) -> None:
    """Start more, empty brokers."""
    added = Sandbox.attach(directory).add_brokers(count, rack=rack)
    click.echo(" ".join(map(str, added)))


@main.command()
@DIRECTORY
@NODE
def kill(directory: Path, node: int) -> None:
    """SIGKILL a node; its data stays."""
    Sandbox.attach(directory).kill(node)


@main.command()
@DIRECTORY
@NODE
def pause(directory: Path, node: int) -> None:
    """SIGSTOP a node: it is there, but answers nothing."""
    Sandbox.attach(directory).pause(node)


@main.command()
@DIRECTORY
@NODE
def resume(directory: Path, node: int) -> None:
    """SIGCONT a paused node."""
    Sandbox.attach(directory).resume(node)


@main.command()
@DIRECTORY
@NODE
def restart(directory: Path, node: int) -> None:
    """Stop a node in an orderly way if it runs, start it again, and wait until it is back."""
    Sandbox.attach(directory).restart(node)


@main.command()
@DIRECTORY
def status(directory: Path) -> None:
    """Show the nodes."""
    sandbox = Sandbox.attach(directory)
    for node in sorted(sandbox.nodes.values(), key=lambda n: (n.role, n.id)):
        click.echo(f"{node.role:<10} {node.id:>5}  {node.address:<16} {node.rack or '-':<8} {node.state()}")


@main.command()
@DIRECTORY
def down(directory: Path) -> None:
    """Stop every node and remove the data."""
    Sandbox.attach(directory).stop()


def run_and_report() -> NoReturn:
    """Errors of the sandbox are one clear message, not a traceback."""
    try:
        sys.exit(main(prog_name="python -m sandbox"))
    except SandboxError as error:
        say(f"sandbox: {error}")
        sys.exit(1)


if __name__ == "__main__":
    run_and_report()
