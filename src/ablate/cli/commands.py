"""The table of commands: where each lives, what it says about itself, and its arguments."""

import argparse
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from ablate.cli import wandb_arguments
from ablate.cli.wandb_arguments import STUDY

OVERRIDES = "configuration overrides, key=value or group=option; `ablate config --keys` lists the keys"
LONGEST_S = 86_400.0  # between two looks of `status --watch`
RUN = "a run: its folder, or the beginning of its id, alone or as study/id"


@dataclass(frozen=True)
class Command:
    """One subcommand: where it lives, what it says about itself, and its arguments.

    One that `trains` goes on when nobody reads its output any more.
    """

    module: str
    summary: str
    description: str
    example: str
    arguments: Callable[[argparse.ArgumentParser], None]
    trains: bool = False

    def run(self, args: argparse.Namespace) -> int:
        """Import the command's module and run it."""
        code = import_module(self.module).run(args)
        assert isinstance(code, int)
        return code


def _overrides(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("overrides", nargs="*", metavar="key=value", help=OVERRIDES)


def _sweep(parser: argparse.ArgumentParser) -> None:
    _overrides(parser)
    parser.add_argument("--plan", action="store_true", help="print what would run, and stop")
    parser.add_argument("-m", "--multirun", action="store_true", help="accepted out of habit; always on")


def _config(parser: argparse.ArgumentParser) -> None:
    _overrides(parser)
    parser.add_argument(
        "--keys",
        nargs="?",
        const="",
        metavar="PATTERN",
        help="list every key (that contains PATTERN) with class, default, allowed values and meaning",
    )


def _params(parser: argparse.ArgumentParser) -> None:
    _overrides(parser)
    parser.add_argument("--all", action="store_true", help="one row for each published architecture")
    parser.add_argument("--json", action="store_true", help="print JSON: every count, bytes and FLOPs")


def _rerun(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="RUN", help=RUN)
    _overrides(parser)
    parser.add_argument(
        "--from-step",
        type=int,
        metavar="N",
        help="start at the newest checkpoint up to step N, probe every step",
    )
    parser.add_argument("--root", default="runs", help="folder of all studies (default: %(default)s)")


def _ls(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", nargs="?", metavar="STUDY", help=f"{STUDY} (default: all)")
    parser.add_argument("--root", default="runs", help="folder of all studies (default: %(default)s)")
    parser.add_argument(
        "--filter",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="only runs whose column or key compares so: = != < <= > >=, ~ for a regular expression; "
        "A=1,2: either; repeatable; quote < and >",
    )
    parser.add_argument("--columns", metavar="A,B,C", help="columns: any configuration or summary key too")
    parser.add_argument("--sort", metavar="A,-B", help="sort by these columns (-: downwards)")
    parser.add_argument("--json", action="store_true", help="print JSON: everything known of each run")


def _status(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", nargs="?", metavar="STUDY", help=STUDY)
    parser.add_argument("--watch", action="store_true", help="print again and again until nothing runs")
    parser.add_argument(
        "--every", type=_seconds, default=2.0, metavar="SECONDS", help="with --watch (default: %(default)s)"
    )
    parser.add_argument("--root", default="runs", help="folder of all studies (default: %(default)s)")


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < (seconds := float(text)) <= LONGEST_S:
            return seconds
    raise argparse.ArgumentTypeError(f"{text} (allowed: a number of seconds above 0, at most a day)")


def _retry(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY", help=STUDY)
    parser.add_argument("--failed", action="store_true", help="only failed runs, not killed or stopped ones")
    parser.add_argument("--root", default="runs", help="folder of all studies (default: %(default)s)")


def _show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="RUN", help=f"{RUN}; or a study")
    parser.add_argument("--step", type=int, metavar="N", help="the probes and the growth around step N")
    parser.add_argument("--all", action="store_true", help="every recorded fact: versions, hashes, groups, …")
    parser.add_argument(
        "overrides", nargs="*", metavar="verdict.key=value", help="judge again with other thresholds"
    )
    parser.add_argument("--root", default="runs", help="folder of all studies (default: %(default)s)")


def _report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY", help=STUDY)
    parser.add_argument(
        "overrides", nargs="*", metavar="verdict.key=value", help="judge all runs again with other thresholds"
    )
    parser.add_argument(
        "--format",
        choices=("html", "md", "csv", "parquet"),
        default="html",
        help="html: the page; md: tables, printed; csv, parquet: one file a table (default: %(default)s)",
    )
    parser.add_argument(
        "--out",
        metavar="PATH",
        help="where to: a file for html and md, a folder for csv and parquet (default: inside the study)",
    )
    parser.add_argument("--figures", metavar="DIR", help="the figures as pictures too: the extra [figures]")
    parser.add_argument("--figure-format", choices=("svg", "png", "pdf"), help="of --figures (default: svg)")
    parser.add_argument("--root", default="runs", help="folder of all studies (default: %(default)s)")


def _export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="RUN", help=RUN)
    parser.add_argument("--to", choices=("hf",), required=True, help="hf: for transformers (Hugging Face)")
    parser.add_argument("--out", metavar="DIR", required=True, help="a new or an empty folder")
    parser.add_argument("--root", default="runs", help="folder of all studies (default: %(default)s)")


COMMANDS = {
    "train": Command(
        "ablate.cli.train",
        "train one run",
        "Train one run and record it under runs/<study>/. A run already done is shown, not trained again "
        "(sweep.redo=true trains it anew).",
        "ablate train model.bias=none optim.lr=3e-3 optim.steps=50 study=try",
        _overrides,
        trains=True,
    ),
    "sweep": Command(
        "ablate.cli.sweep",
        "train every combination of the given values",
        "Train every combination of comma-separated values. All runs are checked before the first starts; "
        "done ones are skipped, so the same command resumes an interrupted study.",
        "ablate sweep model.bias=none,all optim.lr=1e-3,1e-2 seed=0,1 optim.steps=50 study=try",
        _sweep,
        trains=True,
    ),
    "config": Command(
        "ablate.cli.config",
        "print the resolved configuration and its run id",
        "Print the configuration a run would get, what differs from the defaults, and the run id.",
        "ablate config model.placement=post optim.lr=3e-3",
        _config,
    ),
    "params": Command(
        "ablate.cli.params",
        "what a model has and costs: parameters, biases, memory, FLOPs",
        "Count what the built model has: weights and biases by site; and side by side with model.bias=none, "
        "as configured and with model.bias=all (linears and norms; not the head, nor qk_norm): parameters, "
        "bytes of gradients and optimiser state, FLOPs a token, activations of a batch. Nothing is "
        "allocated, whatever the size.",
        "ablate params model=llama model.bias=linear",
        _params,
    ),
    "rerun": Command(
        "ablate.cli.rerun",
        "train a recorded run again and compare every row",
        "Train a recorded run again from its own config.yaml, under its reruns/ folder, and compare every "
        "row: says `exact`, or the first step and column that differ and what differs in the setting. "
        "The example repeats the last run listed.",
        'ablate rerun "$(ablate ls --filter state=done --columns path | tail -n 1)"',
        _rerun,
        trains=True,
    ),
    "ls": Command(
        "ablate.cli.ls",
        "list runs",
        "List runs with state, verdict, arm, learning rate, seed and final val (the held-out loss at the "
        "end), in the order of study, arm, learning rate and seed.",
        "ablate ls --filter verdict=stable,spiked --columns id,arm,lr,final_val --sort -final_val",
        _ls,
    ),
    "status": Command(
        "ablate.cli.status",
        "where a study stands",
        "Count a study's runs by state; list those at work with step, loss, time left and process, and those "
        "that failed, were killed or stopped, with the cause.",
        "ablate status smoke --watch",
        _status,
    ),
    "retry": Command(
        "ablate.cli.retry",
        "launch again what failed, was killed or stopped",
        "Launch again the runs of a study that failed, were killed or were stopped, with the settings they "
        "were frozen with. (`ablate sweep` with the same request does so too, and adds what is missing.)",
        "ablate retry smoke --failed",
        _retry,
        trains=True,
    ),
    "show": Command(
        "ablate.cli.show",
        "show one run or a study's table, or judge a run with other thresholds",
        "Show one run: verdict and why, the linears whose outputs grow fastest, its course, its "
        "configuration against the defaults, its repetitions. With verdict.* overrides the recorded "
        "curve is judged again. For a study: its table. A repetition is RUN/reruns/001.",
        'ablate show "$(ablate ls --filter state=done --columns path | tail -n 1)" verdict.cap=0.1',
        _show,
    ),
    "report": Command(
        "ablate.cli.report",
        "answer a study's question: write its page, tables or figures",
        "Answer a study's question from its records and write runs/STUDY/index.html: what differs between "
        "arms, by how much, how sure that is and what could not have been seen, in one file that needs no "
        "network. A sweep writes it too when it ends. With verdict.* overrides the recorded curves are "
        "judged again (into rejudged.html).",
        "ablate report bias_stability",
        _report,
    ),
    "export": Command(
        "ablate.cli.export",
        "write a finished run's model as a folder that transformers loads",
        "Write the final weights, configuration and tokenizer of a finished run as a folder that Hugging "
        "Face's transformers loads, with the same logits: as GPT-2, BERT, LLaMA, Mistral, Qwen2, Qwen3, "
        "OLMo 2 or GPT-NeoX, whichever says the model (docs/exchange.md). model.weights=DIR starts a run "
        "from such a folder.",
        'ablate export "$(ablate ls --filter state=done --columns path | tail -n 1)" --to hf --out exported',
        _export,
    ),
    "wandb mirror": Command(
        "ablate.cli.wandb_mirror",
        "show a study's runs in Weights & Biases",
        "Bring W&B up to date with a study's run folders, which are only read: offline (whole runs below "
        "runs/STUDY/wandb, for `wandb leet` and `ablate wandb sync`; no key, no network) or online. "
        "Launchers start it beside the runs (tracker.mode); it can run later, elsewhere, and again: only "
        "what is missing is sent.",
        "ablate wandb mirror smoke --mode offline",
        wandb_arguments.mirror,
    ),
    "wandb sync": Command(
        "ablate.cli.wandb_sync",
        "upload what is missing, and ask W&B whether it arrived",
        "Send everything of a study that is not in W&B yet (offline runs, partly uploaded ones, what an "
        "outage or a refusal held up), from the record; then compare the rows that the service holds with "
        "it. Exit code 1 if something is not up in the end.",
        "ablate wandb sync smoke --timeout 600",
        wandb_arguments.sync,
    ),
    "wandb workspace": Command(
        "ablate.cli.wandb_workspace",
        "save a workspace with a study's panels in W&B",
        "Save a W&B workspace for a study's project: loss by learning rate, learning rate against final "
        "loss, parallel coordinates, verdicts, growth by layer. Again: the same workspace is renewed. Needs "
        "pip install 'ablate-bias[workspaces]'.",
        "ablate wandb workspace smoke --json workspace.json",
        wandb_arguments.workspace,
    ),
}
