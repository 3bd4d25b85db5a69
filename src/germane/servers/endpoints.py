"""Endpoints made from verbs: a request's JSON becomes the verb's arguments, its result becomes JSON.

The parameters of a verb's signature are the fields of the body, of the query, or of the path. An annotation
that has no form in JSON must be left out by name, so that a new parameter is never forgotten silently.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from hashlib import sha256
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args
from urllib.parse import unquote

from fastapi import Body, FastAPI, Query, Request
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model
from starlette.responses import Response

from germane.access import AccessRight, Answered
from germane.encoding import to_json
from germane.errors import GermaneError, InvalidInput, NotAllowed, StaleRevision, StoreError, UnknownSpace
from germane.model.memory import Memory, Outcome, Trust
from germane.model.query import Order
from germane.operations.drafts import Quality
from germane.operations.inputs import RANKERS
from germane.operations.lifecycle import VOUCHERS
from germane.ranking.eviction import EvictionPolicy
from germane.servers.guard import HEADER_FORMS, HEADER_MOST
from germane.servers.problems import MEDIA_TYPE, PROBLEM_SCHEMA, problem, problem_of
from germane.servers.schemas import Schemas
from germane.spaces import Right, Role
from germane.working_sets import AgeBasis

if TYPE_CHECKING:
    from germane.servers.identity import Caller

MOST: Final = 1000
"""The most entries of a page."""


_LONGEST_NAME: Final = 200


def _only_text(value: object) -> object:
    if not isinstance(value, str | datetime):
        raise ValueError("write a time as ISO 8601")  # noqa: TRY004 - pydantic asks for a ValueError.
    return value


def _whole(value: object) -> object:
    # JSON has one kind of number: 2.0 is 2.
    return int(value) if isinstance(value, float) and value.is_integer() else value


Name = Annotated[str, Field(min_length=1, max_length=500)]
Text = Annotated[str, Field(max_length=1_000_000)]
SpaceName = Annotated[str, Field(min_length=1, max_length=_LONGEST_NAME)]
_PATH_FORMS: Final[Mapping[str, Any]] = {"space": SpaceName, "user": SpaceName}
Names = Annotated[list[Name], Field(max_length=MOST)]
Objects = Annotated[list[dict[str, Any]], Field(max_length=10_000)]
Time = Annotated[datetime, BeforeValidator(_only_text), Field(strict=False)]
Count = Annotated[int, Field(ge=0, le=10_000_000), BeforeValidator(_whole)]
Share = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Where = Text | dict[str, Any]


def _one_of(words: Iterable[str]) -> Any:
    return Literal[tuple(str(each) for each in words)]


FORMS: Final[Mapping[str, Any]] = {
    "str": Text,
    "str | None": Text | None,
    "bool": bool,
    "bool | None": bool | None,
    "int": Count,
    "int | None": Count | None,
    "float": Share,
    "float | None": Share | None,
    "datetime | None": Time | None,
    "datetime | str | None": Name | None,
    "Sequence[str]": Names,
    "Sequence[str] | None": Names | None,
    "Iterable[str]": Names,
    "Iterable[Named]": Names,
    "Iterable[Named] | None": Names | None,
    "Named": Name,
    "Scope | str": Name,
    "Sequence[Scope | str]": Names,
    "Filter | str | Mapping[str, Any] | None": Where | None,
    "Mapping[str, Any] | None": dict[str, Any] | None,
    "Mapping[str, str] | None": dict[str, Text] | None,
    "Mapping[str, datetime] | None": dict[str, Time] | None,
    "Outcome | str": _one_of(Outcome),
    "Outcome | str | None": _one_of(Outcome) | None,
    "Trust | str | None": _one_of(Trust) | None,
    "timedelta | float | None": Share | None,
    "bool | Reconcile": bool,
    "Quality": _one_of(get_args(Quality)),
    "Voucher | None": _one_of(VOUCHERS) | None,
    "Policy": _one_of(get_args(EvictionPolicy)),
    "AgeBasis | str": _one_of(AgeBasis),
    "Order | str": _one_of(Order),
    "Ranker | str": _one_of(RANKERS),
    "str | TokenCounter | None": Name | None,
    "str | Plan | ScopedPlan": Name,
    "str | Plan": Name,
    "str | Plan | Context | None": Name | None,
    "Framing | None": Name | None,
    "Framing": Name,
    "str | Conversation | None": Text | None,
    "str | Provider": Name,
    "str | Provider | None": Name | None,
    "str | Group": Name,
    "str | Group | None": Name | None,
    "Sequence[str | Group]": Names,
    "str | Mapping[str, Any] | Message": dict[str, Any],
    "Iterable[Mapping[str, Any] | Message] | Mapping[str, Any]": Objects | dict[str, Any],
    "Sequence[Mapping[str, Any]]": Objects,
    "Request | RequestState | Mapping[str, Any] | None": dict[str, Any] | None,
    "Sayable | None": Objects | dict[str, Any] | None,
    "str | Sequence[Mapping[str, Any]] | None": Text | Objects | None,
    "Draft | Mapping[str, Any]": dict[str, Any],
    "Iterable[Draft | str | Mapping[str, Any]]": Annotated[
        list[Text | dict[str, Any]], Field(max_length=MOST)
    ],
    "Right | str": _one_of(Right),
    "Right | str | None": _one_of(Right) | None,
    "Role | str": _one_of(Role),
    "StrategyName | str": Name,
    "Overflow | str": Name,
    "RecencyScope": Name,
    "ClusterBy": Name,
    "Shown": dict[str, Any] | None,
    "Page": Annotated[int, Field(ge=1, le=MOST), BeforeValidator(_whole)],
}
"""The JSON form of each annotation of a verb's parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A verb as an operation of the server.

    `on` gives the object that the verb is called with from the engine and the path; `path` names parameters
    of the verb in braces, and others that `on` takes. `returns` is the type of the JSON, or a mapping of
    fields. `like` is the verb whose parameters `verb` takes by keyword beside its own. `wrap` puts the result
    into an object under that name. `in_space` says that `?space=` may name one, and `by_caller` that the verb
    is called with who calls.
    """

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    verb: Callable[..., Any]
    returns: Any
    on: Callable[[Any, Mapping[str, str]], Any] = lambda target, _: target
    may: AccessRight | None = None
    without: frozenset[str] = frozenset()
    wrap: str | None = None
    in_space: bool = False
    by_caller: bool = False
    like: Callable[..., Any] | None = None
    status: int = HTTPStatus.OK
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The id of the operation in the OpenAPI document."""
        parts = [part.strip("{}") for part in self.path.split("/") if part]
        return "_".join([self.method.lower(), *parts]).replace("-", "_")

    @property
    def right(self) -> AccessRight:
        """The right that a key needs."""
        return self.may or (AccessRight.READ if self.method == "GET" else AccessRight.WRITE)

    @property
    def in_path(self) -> list[str]:
        """The names of the parameters in the path."""
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]


def add_routes(app: FastAPI, routes: list[Route], schemas: Schemas) -> None:
    """Add an operation for each route. Raises InvalidInput for a parameter without a form in JSON."""
    for route in routes:
        wrapped = route.returns if route.wrap is None else {route.wrap: route.returns}
        app.add_api_route(
            f"/v1{route.path}",
            _endpoint(route),
            methods=[route.method],
            operation_id=route.name,
            summary=_summary(route.verb),
            tags=[route.path.split("/")[1]],
            status_code=int(route.status),
            response_class=Response,
            responses=_responses(route, schemas.of(wrapped)),
            openapi_extra={"parameters": _headers(route)},
        )


def _endpoint(route: Route) -> Callable[..., Response]:
    fields = _model_of(route)
    is_query = route.method in ("GET", "DELETE")
    in_query = {"space"} if route.in_space else set()
    if is_query and fields is not None:
        in_query |= set(fields.model_fields)

    def handle(request: Request, given: BaseModel | None = None, **path: str) -> Response:
        caller: Caller = request.state.caller
        unknown = sorted(set(request.query_params) - in_query)
        if unknown:
            known = ", ".join(sorted(in_query)) or "none"
            return problem(
                422, f"query.{unknown[0][:40]}: there is no such parameter here; there is: {known}."
            )
        arguments = {} if given is None else given.model_dump(exclude_unset=True)
        records = arguments.get("record") or arguments.get("into") is not None
        refused = caller.refusal(route.right) or (caller.refusal(AccessRight.WRITE) if records else None)
        if refused is not None:
            return refused
        space = arguments.pop("space", None) if is_query else request.query_params.get("space")
        match = request.headers.get("if-match")

        def answer() -> Response:
            try:
                return _answer(route, request, path, dict(arguments), space if route.in_space else None)
            except GermaneError as error:
                return problem_of(error, precondition=match is not None)

        key = request.headers.get("idempotency-key")
        if key is None or route.method == "GET" or (route.right is AccessRight.READ and not records):
            return answer()
        content = json.dumps([route.name, path, space, match, arguments], sort_keys=True, default=str)
        try:
            return _once(caller, key, content.encode(), answer, gives_up=request.app.state.gives_up)
        except GermaneError as error:
            return problem_of(error)

    parameters = [inspect.Parameter("request", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Request)]
    parameters += [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=Annotated[_PATH_FORMS.get(name, Name), BeforeValidator(unquote)],
        )
        for name in route.in_path
    ]
    if fields is not None:
        marker = Query() if is_query else Body()
        parameters.append(
            inspect.Parameter("given", inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[fields, marker])
        )
    vars(handle)["__signature__"] = inspect.Signature(parameters)
    handle.__doc__ = inspect.getdoc(route.verb)
    return handle


def _once(
    caller: Caller, key: str, content: bytes, answer: Callable[[], Response], *, gives_up: float
) -> Response:
    """The answer to a write that may be sent again, which is made once."""
    made: list[Response] = []

    def make() -> bytes | None:
        made.append(answer())
        if made[0].status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return None
        head = [made[0].status_code, [(name.decode(), value.decode()) for name, value in made[0].raw_headers]]
        return json.dumps(head).encode() + b"\n" + bytes(made[0].body)

    try:
        found = caller.handle.once(caller.key.agent, key, content, make, user=caller.user, gives_up=gives_up)
    except StoreError:
        # What was done is answered, though the answer couldn't be stored.
        if made:
            return made[0]
        raise
    if made:
        return made[0]
    if found.answer is None:
        status, detail, more = _UNANSWERED[found.answered]
        return problem(status, detail, **more)
    head, _, body = found.answer.partition(b"\n")
    status, headers = json.loads(head)
    again = Response(body, status)
    again.raw_headers = [(name.encode(), value.encode()) for name, value in headers]
    again.headers["idempotency-replayed"] = "true"
    return again


_UNANSWERED: Final[Mapping[Answered, tuple[int, str, dict[str, Any]]]] = {
    Answered.NOT_YET: (
        HTTPStatus.CONFLICT,
        "The request with this Idempotency-Key is still under way.",
        {"headers": {"retry-after": "1"}},
    ),
    Answered.OTHERWISE: (
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "This Idempotency-Key was used for another request. Use a new key for each request.",
        {"error": "InvalidInput"},
    ),
    Answered.GONE: (
        HTTPStatus.CONFLICT,
        (
            "The request with this Idempotency-Key was answered before and isn't done again. Its answer was "
            "too long to store, or something was purged since: read what it was to change."
        ),
        {},
    ),
}


def _answer(
    route: Route, request: Request, path: Mapping[str, str], arguments: dict[str, Any], space: str | None
) -> Response:
    caller: Caller = request.state.caller
    engine = caller.engine
    target: Any = engine if space is None else engine.space(space)
    arguments |= {name: path[name] for name in route.in_path if name in _parameters(route)}
    expected = request.headers.get("if-match")
    if expected is not None and "memory_id" in path:
        version = _check_match(target, path["memory_id"], expected)
        if "expected" in _parameters(route):
            arguments.setdefault("expected", version)
    try:
        on = caller if route.by_caller else route.on(target, path)
        value = _bound(route.verb, on)(**arguments)
    except NotAllowed as error:
        if not any(each.name == error.space for each in engine.spaces()):
            # Who is no member doesn't learn that there is such a space.
            raise UnknownSpace(error.space) from None
        raise
    shape = to_json(value) if route.wrap is None else {route.wrap: to_json(value)}
    content = json.dumps(shape, ensure_ascii=False).encode("utf-8", "backslashreplace")
    headers = {}
    memory = value.get("memory") if isinstance(value, dict) else value
    if isinstance(memory, Memory):
        headers["etag"] = etag(memory)
        if request.method == "GET" and headers["etag"] in _listed(request.headers.get("if-none-match", "")):
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(content, route.status, media_type="application/json", headers=headers)


def etag(memory: Memory) -> str:
    """The entity tag of a memory: its version, and a digest of all that is shown of it."""
    content = json.dumps(to_json(memory)).encode()
    return f'"{memory.version}-{sha256(content).hexdigest()[:16]}"'


def _listed(header: str) -> list[str]:
    return [each.strip().removeprefix("W/") for each in header.split(",")]


def _check_match(target: Any, memory_id: str, header: str) -> int:
    """The current version, which an If-Match must name. What only counts uses of a memory doesn't matter."""
    current: int = target.get(memory_id).version
    tags = _listed(header)
    if "*" not in tags and not any(each.strip('"').partition("-")[0] == str(current) for each in tags):
        raise StaleRevision(memory_id, f"{memory_id}@{current}")
    return current


def _parameters(route: Route) -> dict[str, inspect.Parameter]:
    """The parameters of a route's verb without the first, and those of the verb that it is like."""
    own = dict(list(inspect.signature(route.verb).parameters.items())[1:])
    if route.like is not None:
        more = list(inspect.signature(route.like).parameters.items())[1:]
        own |= {name: each for name, each in more if name not in own}
    return {name: each for name, each in own.items() if each.kind is not inspect.Parameter.VAR_KEYWORD}


def _model_of(route: Route) -> type[BaseModel] | None:
    """The fields of the body or the query as a model; None for none."""
    is_query = route.method in ("GET", "DELETE")
    fields: dict[str, Any] = {}
    for name, each in _parameters(route).items():
        if name in route.in_path or name in route.without:
            continue
        form = route.fields.get(name, FORMS.get(str(each.annotation)))
        if form is None:
            raise InvalidInput(f"{route.path}: parameter {name} has no JSON form: {each.annotation}.")
        default = ... if each.default is inspect.Parameter.empty else to_json(each.default)
        fields[name] = (form, default)
    if is_query and route.in_space:
        fields["space"] = (SpaceName | None, None)
    if not fields:
        return None
    config = ConfigDict(extra="forbid", strict=not is_query, use_enum_values=True, validate_default=False)
    title = "".join(part.capitalize() for part in route.name.split("_"))
    return create_model(title, __config__=config, **fields)


def _headers(route: Route) -> list[dict[str, Any]]:
    found = [_header("Germane-User", "One user of the agent, percent-encoded.")]
    if route.method != "GET":
        found.append(_header("Idempotency-Key", "The same key again is answered as it was before."))
        if "memory_id" in route.in_path:
            found.append(_header("If-Match", "The ETag of the version that was read."))
        if route.in_space and route.method != "DELETE":
            found.append(
                {
                    "name": "space",
                    "in": "query",
                    "required": False,
                    "description": "A space of the agent.",
                    "schema": {"type": "string", "minLength": 1, "maxLength": _LONGEST_NAME},
                }
            )
    elif route.returns is Memory or route.wrap == "memory":
        found.append(_header("If-None-Match", "The ETag of what is known already."))
    return found


def _header(name: str, description: str) -> dict[str, Any]:
    schema = {
        "type": "string",
        "minLength": 1,
        "maxLength": HEADER_MOST,
        "pattern": HEADER_FORMS[name.lower()],
    }
    return {"name": name, "in": "header", "required": False, "description": description, "schema": schema}


PROBLEMS: Final = {
    400: "The request isn't HTTP or JSON.",
    401: "The key is missing, wrong, revoked or has expired.",
    403: "The key, or the member of the space, may not do this.",
    404: "There is nothing of that name that belongs to the caller.",
    408: "The request didn't arrive in time.",
    409: "Somebody else changed it first, or the same request is under way.",
    412: "If-Match names another version.",
    413: "The body is too large.",
    422: "A value can't be accepted; nothing was stored.",
    429: "Too many requests of this key.",
    431: "The request line and the headers are too large.",
    503: "The server or the store is busy; Retry-After says when to try again.",
}


def _responses(route: Route, schema: dict[str, Any]) -> dict[int | str, dict[str, Any]]:
    found: dict[int | str, dict[str, Any]] = {
        int(route.status): {"description": "Done.", "content": {"application/json": {"schema": schema}}}
    }
    reference = {"$ref": "#/components/schemas/Problem"}
    for status, description in PROBLEMS.items():
        found[status] = {"description": description, "content": {MEDIA_TYPE: {"schema": reference}}}
    return found


def _bound(verb: Callable[..., Any], on: object) -> Callable[..., Any]:
    """The verb of an object: its own form of a method of its class, or a function that takes it first."""
    name = verb.__name__
    is_method = any(vars(each).get(name) is verb for each in type(on).__mro__)
    return getattr(on, name) if is_method else partial(verb, on)


def _summary(verb: Callable[..., Any]) -> str:
    text = inspect.getdoc(verb) or ""
    return text.split("\n\n")[0].replace("\n", " ").split(". ")[0].rstrip(".") + "."


__all__ = ["MOST", "PROBLEM_SCHEMA", "Route", "add_routes", "etag", "problem"]
