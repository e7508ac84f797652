"""Options that several commands share, and those of ``duolog run``: the value and help line of each.

An option of ``run`` that is not given is None, so that it does not override the TOML file. The default in
the help is the one of ``Experiment``.
"""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from .arguments import MOST_RESAMPLES

__all__ = (
    "Against",
    "Agent",
    "AgentEnv",
    "AgentTimeout",
    "Agents",
    "ApiBase",
    "AsJson",
    "BudgetCost",
    "BudgetTokens",
    "Cache",
    "Compare",
    "Concurrency",
    "CountRounds",
    "Dataset",
    "DryRun",
    "Filters",
    "Force",
    "Host",
    "HostNames",
    "Instances",
    "Judge",
    "JudgeModel",
    "Log",
    "LogToRead",
    "LogToWrite",
    "MaxActs",
    "MaxRounds",
    "Model",
    "Models",
    "NumbersAsJson",
    "OfTask",
    "Outcome",
    "PairBy",
    "Patience",
    "Pool",
    "Port",
    "Price",
    "Redact",
    "Repeats",
    "Resamples",
    "ResamplingSeed",
    "RowsAsCsv",
    "Seed",
    "SessionCost",
    "SessionIds",
    "SessionTokens",
    "Sessions",
    "Sources",
    "StopAt",
    "TaskOrFile",
    "Taus",
    "TextActions",
    "TrustedProxy",
    "UserModel",
    "Users",
    "Utility",
)

# --- what is read and written ----------------------------------------------------------------

LogToRead = Annotated[str, typer.Argument(metavar="LOG", help="Path or URL of the log.")]
LogToWrite = Annotated[
    str, typer.Option(metavar="LOG", help="Path or URL; created if it does not exist.")
]
Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="LOG|FILE|DIR...",
        help="Logs (path or URL), JSON Lines files of trajectories, or a directory of tables.",
    ),
]
Filters = Annotated[
    list[str] | None,
    typer.Argument(metavar="FILTER", help="Only sessions that meet all of these, below."),
]
SessionIds = Annotated[
    str | None,
    typer.Option(
        metavar="SESSIONS", help="Only these sessions, by their ids, separated by commas."
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]

# --- what is computed ------------------------------------------------------------------------

Utility = Annotated[
    str | None,
    typer.Option(metavar="SCORER", help="Whose utility counts: NAME or NAME@VERSION."),
]
Judge = Annotated[
    str,
    typer.Option(
        metavar="SCORER",
        help="Whose ratings count: NAME, NAME@VERSION, human, none or auto.",
    ),
]
CountRounds = Annotated[
    Literal["handoff", "human-turn"],
    typer.Option(help="When a round begins: after a handoff, or with each human turn."),
]
Taus = Annotated[
    str, typer.Option(metavar="NUMBERS", help="Tolerances τ to compute, separated by commas.")
]
Compare = Annotated[
    str | None,
    typer.Option(
        metavar="AGENTS",
        help="Agents to compare in pairs, problem by problem, separated by commas.",
    ),
]
Outcome = Annotated[
    str | None,
    typer.Option(
        metavar="QUANTITIES",
        help="Quantities that the comparison tests, such as overall or drop@2.",
        show_default="overall",
    ),
]
PairBy = Annotated[
    Literal["problem", "instance"] | None,
    typer.Option(help="What two sessions share that are compared.", show_default="problem"),
]
Against = Annotated[
    str, typer.Option(metavar="HUMAN_LOG", help="Path or URL of a log with real people.")
]
Resamples = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=0,
        max=MOST_RESAMPLES,
        help="Number of resamples for the intervals; 0 for none.",
    ),
]
ResamplingSeed = Annotated[int, typer.Option(metavar="N", help="Seed of the resampling.")]
Price = Annotated[
    float,
    typer.Option(
        metavar="UTILITY", min=0, max=1, help="Utility that a minute of the human's time is worth."
    ),
]
NumbersAsJson = Annotated[bool, typer.Option("--json", help="Print all numbers as JSON.")]
RowsAsCsv = Annotated[bool, typer.Option("--csv", help="Print CSV, one row per group.")]

# --- servers ---------------------------------------------------------------------------------

Host = Annotated[
    str,
    typer.Option(
        metavar="HOST", help="Address to listen on; beyond loopback only with a token given."
    ),
]
HostNames = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="A host name by which browsers address it, as of a proxy."),
]
Port = Annotated[
    int,
    typer.Option(metavar="PORT", min=0, max=65535, help="Port to listen on; 0 for any free port."),
]
TrustedProxy = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ADDRESS",
        help="Address or network of a reverse proxy whose X-Forwarded-For names the client.",
    ),
]

# --- the task ---------------------------------------------------------------------------------

TaskOrFile = Annotated[
    str,
    typer.Argument(
        metavar="TASK|FILE",
        help="The task, e.g. travel; yours, as file.py:Name; or a file of experiments, in TOML or Python.",
    ),
]
OfTask = Annotated[
    str | None,
    typer.Option(
        metavar="TASK",
        help="The task, as file.py:Name, if its file is not here or has changed.",
        show_default="the recorded one",
    ),
]

# --- who works with whom ---------------------------------------------------------------------

Agent = Annotated[
    str | None,
    typer.Option(
        metavar="AGENT",
        help="Kind of agent, file.py:Name, openai:URL, acp:COMMAND or exec:COMMAND.",
        show_default="the task's first",
    ),
]
Agents = Annotated[
    str | None,
    typer.Option(
        metavar="AGENTS",
        help="Kinds of agents, file.py:Name, openai:URL, acp:COMMAND or exec:COMMAND, separated by commas.",
        show_default="the task's",
    ),
]
AgentTimeout = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS", help="Time limit for one turn of an external agent.", show_default="300"
    ),
]
AgentEnv = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Environment variable that the program of an external agent gets too, such as its API key.",
    ),
]
Users = Annotated[
    str | None,
    typer.Option(
        metavar="USERS",
        help="Personas, perhaps with numbers, as bounded+memory=3; persona.toml; or file.py:Name; by commas.",
        show_default="the task's",
    ),
]
Models = Annotated[
    str | None,
    typer.Option(
        metavar="MODELS",
        help="Models behind the agents, as LiteLLM names them, separated by commas.",
        show_default="rules",
    ),
]
Model = Annotated[
    str | None,
    typer.Option(metavar="MODEL", help="Model behind the agent.", show_default="rules"),
]
UserModel = Annotated[
    str | None,
    typer.Option(metavar="MODEL", help="Model behind the user.", show_default="rules"),
]
JudgeModel = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help="Model of the judges: it rates progress, and reads what only a model can read.",
    ),
]

# --- how models are reached ------------------------------------------------------------------

ApiBase = Annotated[str | None, typer.Option(metavar="URL", help="Base URL of your model server.")]
TextActions = Annotated[
    str | None,
    typer.Option(
        metavar="MODELS",
        help="Models that cannot call tools and write actions as text, separated by commas.",
    ),
]
Cache = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Directory that caches model replies."),
]

# --- on what ---------------------------------------------------------------------------------

Sessions = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Sessions per cell, from the first instance on; 1,000,000 in all cells at most.",
        show_default="30",
    ),
]
Instances = Annotated[
    str | None, typer.Option(metavar="INSTANCES", help="Instances to play, e.g. 0-9,17.")
]
Dataset = Annotated[
    str | None,
    typer.Option(metavar="PATH", help="File or directory with the data of the task."),
]
Seed = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="Seed for the task's world and all randomness.", show_default="0"
    ),
]
Repeats = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="How often to play each problem, with different random draws.",
        show_default="1",
    ),
]
Concurrency = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, help="Number of sessions at the same time.", show_default="32"
    ),
]
Log = Annotated[
    str | None,
    typer.Option(
        metavar="LOG",
        help="Path or URL of the log; created if it does not exist.",
        show_default="duolog.db",
    ),
]

# --- limits ----------------------------------------------------------------------------------

Redact = Annotated[
    str | None,
    typer.Option(
        metavar="default|off|FILE",
        show_default="default",
        help="Secrets that are not recorded: keys and tokens of known forms, none, or those and the "
        "regular expressions in a file.",
    ),
]
MaxRounds = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, help="Maximum number of rounds in a session.", show_default="30"
    ),
]
MaxActs = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, help="Maximum number of acts in a session.", show_default="200"
    ),
]
SessionTokens = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Maximum number of model tokens in a session."),
]
SessionCost = Annotated[
    float | None,
    typer.Option(metavar="DOLLARS", min=0, help="Maximum cost of a session in US dollars."),
]
BudgetTokens = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, help="Maximum number of tokens of all model calls together."),
]
BudgetCost = Annotated[
    float | None,
    typer.Option(
        metavar="DOLLARS", min=0, help="Maximum cost of all model calls together in US dollars."
    ),
]
StopAt = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="TAU",
        help="Stop a session after this many unproductive rounds in a row (the judge rates them 1 or 2).",
    ),
]
Patience = Annotated[
    str | None,
    typer.Option(
        metavar="N|off",
        help="Users quit after this many unproductive rounds in a row (they rate them 1 or 2).",
        show_default="off",
    ),
]
AsJson = Annotated[
    bool,
    typer.Option("--json", help="Print the outcome and the report's numbers as JSON."),
]
Pool = Annotated[
    bool,
    typer.Option("--pool", help="Allow a log that holds sessions of a different experiment."),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Estimate calls, tokens and cost; run nothing.")
]
