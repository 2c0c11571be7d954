"""What the service itself says it holds of a run: its word counts, not an exit code's."""

import base64
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from ablate.mirror.mode import api_key, base_url
from ablate.mirror.rows import STEP
from ablate.mirror.service import Refused, Unreachable

TIMEOUT_S = 10.0
REFUSALS = (400, 401, 403, 404)
# The operation that W&B's own client asks for before it resumes a run; and the one that forgets a run.
_HELD = """
query RunResumeStatus($project: String, $entity: String, $name: String!) {
  model(name: $project, entityName: $entity) {
    bucket(name: $name, missingOk: true) { id historyLineCount historyTail }
  }
}"""
_ROWS = """
query HistoryPage(
  $entity: String, $project: String!, $run: String!, $minStep: Int64!, $maxStep: Int64!, $pageSize: Int!
) {
  project(name: $project, entityName: $entity) {
    run(name: $run) { history(minStep: $minStep, maxStep: $maxStep, samples: $pageSize) }
  }
}"""
PAGE = 1_000  # steps, and so rows at most, in one answer
_FORGET = """
mutation DeleteRun($id: ID!) { deleteRun(input: {id: $id}) { clientMutationId } }"""


@dataclass(frozen=True)
class Held:
    """What the service has of a run: its own id, the number of rows, and the newest row's step."""

    storage_id: str
    rows: int
    last_step: int | None


def held(entity: str | None, project: str, run: str) -> Held | None:
    """Ask for a run; None if there is none. Raises Refused, Unreachable."""
    data = _ask("RunResumeStatus", _HELD, {"entity": entity, "project": project, "name": run})
    bucket = (data.get("model") or {}).get("bucket")
    if bucket is None:
        return None
    return Held(
        str(bucket["id"]), int(bucket["historyLineCount"] or 0), _last_step(bucket.get("historyTail"))
    )


def rows(entity: str | None, project: str, run: str, end: int) -> list[dict[str, Any]]:
    """The rows of a run at the steps 0 ≤ step < end, in the service's order. Raises Refused, Unreachable."""
    found: list[dict[str, Any]] = []
    for start in range(0, end, PAGE):
        span = {"minStep": start, "maxStep": min(start + PAGE, end), "pageSize": PAGE}
        data = _ask("HistoryPage", _ROWS, {"entity": entity, "project": project, "run": run, **span})
        texts = ((data.get("project") or {}).get("run") or {}).get("history") or []
        found += [json.loads(text) if isinstance(text, str) else text for text in texts]
    return found


def forget(storage_id: str) -> None:
    """Delete a run whose rows the record has voided. Raises Refused, Unreachable."""
    _ask("DeleteRun", _FORGET, {"id": storage_id})


def _last_step(tail: object) -> int | None:
    """The step of the newest row: the tail is a JSON list of rows that are JSON texts themselves."""
    try:
        rows = json.loads(str(tail))
        row = json.loads(rows[-1]) if isinstance(rows[-1], str) else rows[-1]
        return int(row.get("_step", row.get(STEP)))
    except (ValueError, IndexError, TypeError, AttributeError):
        return None


def _ask(name: str, query: str, variables: Mapping[str, Any]) -> dict[str, Any]:
    body = json.dumps({"operationName": name, "query": query, "variables": dict(variables)}).encode()
    secret = base64.b64encode(f"api:{api_key(os.environ) or ''}".encode()).decode()
    headers = {"Content-Type": "application/json", "Authorization": f"Basic {secret}"}
    request = Request(
        f"{base_url(os.environ).rstrip('/')}/graphql", data=body, headers=headers, method="POST"
    )
    try:
        with urlopen(request, timeout=TIMEOUT_S) as response:
            answer = json.load(response)
    except HTTPError as error:
        words = f"the service answered {error.code} to {name}"
        raise (Refused if error.code in REFUSALS else Unreachable)(words) from error
    except (URLError, OSError, ValueError) as error:
        raise Unreachable(f"the service did not answer {name}: {error}") from error
    if answer.get("errors"):
        raise Refused(f"the service refused {name}: {str(answer['errors'])[:200]}")
    return dict(answer.get("data") or {})
