"""The operator's guide: what has to be there, the order and its deadlines, the first request, what proves it works."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence

from moeplan.manifests.probes import PROBE_SECONDS, until_ended
from moeplan.model.rendering import GuideStep
from moeplan_vllm_cuda.rendering.asked import Against, Asked
from moeplan_vllm_cuda.rendering.objects import PROGRESS_BEYOND
from moeplan_vllm_cuda.rendering.options import draft_repository
from moeplan_vllm_cuda.rendering.placing import statement
from moeplan_vllm_cuda.rendering.scripts import script_name
from moeplan_vllm_cuda.rendering.workloads import driver_branch

__all__ = ["guide_steps"]

_SMOKE_SECONDS = 300
_SMOKE_TOKENS = 1024
_APPLY_SECONDS = 60
_NAMED = 12
"""Nodes that a sentence names; a step holds 4096 characters."""


def guide_steps(asked: Asked, findings: Sequence[Against] = ()) -> tuple[GuideStep, ...]:
    """Return the steps in the order in which they are done; ``findings`` of the facts were accepted."""
    return (
        *_accepted(asked, findings),
        *_prerequisites(asked),
        *_deployment(asked),
        _without_kubernetes(asked),
        *_smoke(asked),
        *_proofs(asked),
    )


def _accepted(asked: Asked, findings: Sequence[Against]) -> Iterator[GuideStep]:
    """Yield what speaks against the deployment, where there is something: it is read first."""
    lines = [f"- {one.fact}: {one.issue.message}" for one in (*asked.against, *findings)]
    if lines:
        told = "It is rendered nevertheless, because it was accepted or because a recipe says that it runs:"
        yield GuideStep("prerequisite", "Know what speaks against it", "\n".join((told, *dict.fromkeys(lines))))


def _prerequisites(asked: Asked) -> Iterator[GuideStep]:
    ground, sizes = asked.ground, asked.sizes
    hosts = ground.every_host()
    names = ", ".join(host.name for _, host in hosts[:_NAMED])
    names += f" and {len(hosts) - _NAMED} more" if len(hosts) > _NAMED else ""
    told = statement(asked.plan, sizes.layout, asked.placed)
    for role, one in asked.options.items():
        told += f"\n- {role}: the engine takes {one.arguments['--max-num-seqs']} requests at once (--max-num-seqs)."
    if ground.draft is not None:
        told += "\nThe draft's weights come on top and are not in these figures."
    yield GuideStep("prerequisite", "Know what placement says", told)
    told = (
        f"Each of {names} needs {sizes.gpus_per_node} GPUs that no pod and no process uses. Present is not free: the "
        "first command shows what there is, the second what is asked for already."
    )
    yield GuideStep(
        "prerequisite",
        "Free GPUs",
        told,
        (
            "kubectl get nodes -o custom-columns=NODE:.metadata.name,GPU:.status.allocatable.'nvidia\\.com/gpu'",
            *(
                f"kubectl describe node {host.name} | grep -A12 'Allocated resources'"
                for _, host in ground.every_host()
            ),
        ),
    )
    branch = driver_branch(asked)
    if branch:
        release = asked.ground.engine_version
        told = f"vLLM {release} is built for a CUDA that needs driver {branch} or later; the probes below check."
        yield GuideStep("prerequisite", "The driver", told)
    yield from _downloads(asked)
    yield from _cluster(asked)


def _downloads(asked: Asked) -> Iterator[GuideStep]:
    ground, artifact = asked.ground, asked.plan.artifact
    commands = []
    for _, host in ground.every_host():
        target = shlex.quote(f"{host.model_directory.rstrip('/')}/{ground.target}")
        commands.append(f"# on {host.name}")
        commands.append(f"hf download {artifact.repository} --revision {artifact.revision} --local-dir {target}")
        repository = draft_repository(artifact.repository)
        if ground.draft is not None and repository is not None:
            draft = shlex.quote(f"{host.model_directory.rstrip('/')}/{ground.draft}")
            commands.append(f"hf download {repository} --local-dir {draft}")
    told = (
        "Each node reads its own copy from a local disk; over NFS a load of this size outlasts the engine's timeout. "
        "The engine is offline and fetches nothing."
    )
    yield GuideStep("prerequisite", "The checkpoint on each node", told, tuple(commands))
    for _, host in ground.every_host() if ground.draft is not None else ():
        told = (
            f"Its root must be {asked.plan.deployment.draft_checkpoint_root}, which the plan names and evidence binds."
        )
        draft = shlex.quote(f"{host.model_directory.rstrip('/')}/{ground.draft}")
        command = f"moeplan checkpoint digest {draft} --json | jq -r .root"
        yield GuideStep("prerequisite", f"The draft's digest on {host.name}", told, (command,))


def _cluster(asked: Asked) -> Iterator[GuideStep]:
    if asked.sizes.nodes > 1:
        told = "Engines over several nodes are LeaderWorkerSets: the cluster needs the operator of lws.sigs.k8s.io."
        command = "kubectl get crd leaderworkersets.leaderworkerset.x-k8s.io"
        yield GuideStep("prerequisite", "The LeaderWorkerSet operator", told, (command,))
    told = "PodMonitor and PrometheusRule need the Prometheus Operator; leave 50-monitoring.yaml out without it."
    command = "kubectl get crd podmonitors.monitoring.coreos.com prometheusrules.monitoring.coreos.com"
    yield GuideStep("prerequisite", "The Prometheus Operator", told, (command,))


def _deployment(asked: Asked) -> Iterator[GuideStep]:
    where, startup = asked.ground.namespace, asked.startup_seconds
    deadline = startup + PROGRESS_BEYOND
    selector = ",".join(f"{key}={value}" for key, value in asked.labels("probe").items())
    apply = ("kubectl apply -f 10-namespace.yaml",)
    yield GuideStep("deploy", "The namespace", "All other objects lie in it.", apply, _APPLY_SECONDS)
    told = (
        "One Job a node takes all its GPUs for a moment and looks at them, the driver and the RDMA devices; another "
        "mounts the model directory itself and says what it lies on and what is in it. A Job whose pod stays pending "
        "has no free GPUs. All is well where each Job has 1/1 completions and no log names a fault; go on only then. "
        "The last command makes room for the engine."
    )
    commands = (
        "kubectl apply -f 20-probes.yaml",
        until_ended(where, f"$(kubectl -n {where} get job -l {selector} -o name)"),
        f"kubectl -n {where} get job -l {selector}",
        f"kubectl -n {where} logs -l {selector} --prefix --tail=-1",
        "kubectl delete -f 20-probes.yaml",
    )
    yield GuideStep("deploy", "Probe the nodes", told, commands, PROBE_SECONDS)
    for number, role in enumerate(asked.options):
        kind = "leaderworkerset" if asked.sizes.nodes > 1 else "deployment"
        name, file = asked.workload_name(role), f"3{number}-{role}.yaml"
        start = (
            f"kubectl apply -f {file}",
            f"kubectl -n {where} get pods -o wide",
            f"kubectl -n {where} wait --for=condition=Available {kind}/{name} --timeout={deadline}s",
        )
        told = f"The engine gives up after {asked.timeout_seconds} s and says so; the startup probe after {startup} s."
        yield GuideStep("deploy", f"Start {role}", told, start, deadline)
    if asked.paired:
        wait = f"kubectl -n {where} wait --for=condition=Available deployment/{asked.name}-router --timeout=300s"
        told = "It takes requests only when both roles answer."
        yield GuideStep("deploy", "Start the router", told, ("kubectl apply -f 40-router.yaml", wait), 300)
    told = "Alarms are no evidence; they say when to look."
    yield GuideStep("deploy", "Monitoring", told, ("kubectl apply -f 50-monitoring.yaml",), _APPLY_SECONDS)


def _without_kubernetes(asked: Asked) -> GuideStep:
    lines = [
        "In place of the steps above: on each node its docker script, or its serve script where vLLM is installed."
    ]
    lines.append("The scripts of one role are started together." + (" Then the router's." if asked.paired else ""))
    hosts = asked.ground.every_host()
    for number, (role, host) in enumerate(hosts[:_NAMED], 1):
        docker, bare = (script_name(form, number, host) for form in ("docker", "serve"))
        lines.append(f"- {host.name} ({role}): {docker} or {bare}")
    if len(hosts) > _NAMED:
        lines.append(f"- and so on for {len(hosts) - _NAMED} more; each script bears its node's name")
    return GuideStep("deploy", "Or without Kubernetes", "\n".join(lines))


def _smoke(asked: Asked) -> Iterator[GuideStep]:
    where, port = asked.ground.namespace, asked.ground.ports["router" if asked.paired else "serve"]
    body = (
        f'{{"model":{json.dumps(asked.ground.served)},'
        '"messages":[{"role":"user","content":"What is the capital of France?"}],'
        f'"max_tokens":{_SMOKE_TOKENS}}}'
    )
    commands = (
        f"kubectl -n {where} port-forward svc/{asked.name} 18000:{port} & FORWARD=$!",
        "sleep 3; kill -0 $FORWARD || echo 'the forward died: take another local port'",
        f"curl --fail-with-body --max-time {_SMOKE_SECONDS} http://127.0.0.1:18000/v1/chat/completions "
        f"-H 'Content-Type: application/json' -d {shlex.quote(body)}",
        "kill $FORWARD",
    )
    told = (
        f"{_SMOKE_TOKENS} tokens, because a model that reasons first may not reach its answer in fewer; a limit on "
        "the time, because what fails here hangs rather than errs."
    )
    yield GuideStep("smoke", "One request", told, commands, _SMOKE_SECONDS + 30)


def _proofs(asked: Asked) -> Iterator[GuideStep]:
    where = asked.ground.namespace
    if asked.ground.draft is not None:
        yield from (_speculation(asked, role) for role in asked.options if role != "prefill")  # it drafts nothing
    if asked.paired:
        yield from _handoff(asked)
    told = (
        "Look while the plan's workload runs. Requests do not queue where its concurrency fits: running ones reach it, "
        "waiting ones stay near 0."
    )
    roles = [role for role in asked.options if role != "prefill"]
    commands = tuple(
        f"kubectl -n {where} exec {_first(asked, role)} -c engine -- {_metrics(asked, 'num_requests')}"
        for role in roles
    )
    yield GuideStep("proof", "The workload fits", told, commands, 120)


def _speculation(asked: Asked, role: str) -> GuideStep:
    where, pods, accepted = asked.ground.namespace, _pods(asked, role), _metrics(asked, "spec_decode_num_accepted")
    told = (
        "The first count must be 0: a draft that runs eagerly is slow without an error (fact C-SPC-008). The second "
        "command must show num_spec_tokens above 0, the third accepted tokens that grow with each request."
    )
    commands = (
        f"kubectl -n {where} logs {pods} --tail=-1 | grep -c 'running the draft eagerly'",
        f"kubectl -n {where} logs {pods} --tail=-1 | grep -o 'num_spec_tokens=[0-9]*' | sort -u",
        f"kubectl -n {where} exec {_first(asked, role)} -c engine -- {accepted}",
    )
    return GuideStep("proof", f"Speculation works ({role})", told, commands, 120)


def _handoff(asked: Asked) -> Iterator[GuideStep]:
    where, first, pods = asked.ground.namespace, _first(asked, "decode"), _pods(asked, "decode")
    told = (
        "A right answer proves nothing: a hand-off that fails may be computed again. On decode the NIXL counters of "
        "transfers must grow with each request, those of failed ones stay 0, and hits of the external prefix cache "
        "must be nearly as many as its queries."
    )
    commands = (
        f"kubectl -n {where} exec {first} -c engine -- {_metrics(asked, 'nixl')}",
        f"kubectl -n {where} exec {first} -c engine -- {_metrics(asked, 'external_prefix_cache')}",
        f"kubectl -n {where} logs {pods} --tail=-1 | grep 'External prefix cache hit rate' | tail -3",
    )
    yield GuideStep("proof", "KV is handed over", told, commands, 120)
    told = (
        "Send the same prompts under load to this pair and to a deployment of one role, and compare the answers: "
        "transferred state that is cut or mixed up answers with HTTP 200 (facts C-PD-015, C-PD-019 and C-PD-020)."
    )
    yield GuideStep("proof", "Answers under load are those of one engine", told)


def _pods(asked: Asked, role: str) -> str:
    return "-l " + ",".join(f"{key}={value}" for key, value in asked.labels(role).items())


def _first(asked: Asked, role: str) -> str:
    name = asked.workload_name(role)
    return f"{name}-0" if asked.sizes.nodes > 1 else f"deployment/{name}"


def _metrics(asked: Asked, word: str) -> str:
    port = asked.ground.ports["serve"]
    program = (
        "import urllib.request as u; "
        f"print(*[l for l in u.urlopen('http://127.0.0.1:{port}/metrics').read().decode().splitlines() "
        f"if '{word}' in l and l[:1] != '#'], sep=chr(10))"
    )
    return f'python3 -c "{program}"'
