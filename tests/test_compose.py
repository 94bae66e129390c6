"""What docker-compose.yaml uses exists: checked with Compose's schema, Airflow and Spark."""

from __future__ import annotations

import importlib.util
import json
import re
import stat
import sys
import tomllib
import zipfile
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

import pytest
import yaml
from cryptography.fernet import Fernet
from sqlalchemy import make_url

from tests.compose_file import (
    AIRFLOW,
    BROKERS,
    COMPOSE,
    DOCKERFILE,
    EXAMPLE,
    KAFKA,
    MAKE_ENV,
    PROJECT,
    ROOT,
    SECRET,
    SERVICES,
    SPARK,
    TEXT,
    VARIABLE,
    commands,
    copied,
    environment,
    listeners,
    mounts,
    parse_env,
    run,
)


def test_the_file_follows_the_compose_schema():
    schema = ["--builtin-schema", "vendor.compose-spec"]
    run(sys.executable, "-m", "check_jsonschema", *schema, ROOT / "docker-compose.yaml")


def test_the_variables_it_takes_are_those_of_the_example_with_the_same_defaults():
    taken = {found["name"]: found["text"] if found["rule"] == ":-" else "" for found in VARIABLE.finditer(TEXT)}
    assert TEXT.count("$") == len(VARIABLE.findall(TEXT))
    assert taken == parse_env(EXAMPLE)


def test_no_secret_is_written_down():
    as_written = yaml.safe_load(TEXT)["services"].values()
    settings = [setting for service in as_written for setting in service.get("environment", {}).items()]
    assert all(VARIABLE.fullmatch(value)["rule"] == ":?" for name, value in settings if SECRET.search(name))
    databases = {
        make_url(VARIABLE.sub("from-env", value)) for name, value in settings if name.endswith("SQL_ALCHEMY_CONN")
    }
    assert {database.password for database in databases} == {"from-env"}
    assert all(not value for name, value in parse_env(EXAMPLE).items() if SECRET.search(name))


def test_new_secrets_fill_dot_env_once_for_its_owner_only(tmp_path: Path):
    (tmp_path / ".env.example").write_text(EXAMPLE, encoding="utf-8")
    made = tmp_path / ".env"
    MAKE_ENV["main"](tmp_path)
    first = made.read_text(encoding="utf-8")
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    assert all(parse_env(first).values())
    Fernet(parse_env(first)["AIRFLOW_FERNET_KEY"])
    MAKE_ENV["main"](tmp_path)
    assert made.read_text(encoding="utf-8") == first != MAKE_ENV["fill"](EXAMPLE)


def test_git_and_the_image_leave_dot_env_out():
    assert "/.env" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    kept = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(kept) == sorted(copied())


def test_what_is_built_copied_and_mounted_exists_in_the_project():
    builds = [ROOT / service["build"]["context"] for service in SERVICES.values() if "build" in service]
    files = [ROOT / service["build"]["dockerfile"] for service in SERVICES.values() if "build" in service]
    bound = [ROOT / source for name in SERVICES for source, *_ in mounts(name) if source.startswith(".")]
    assert builds
    for path in [*builds, *files, *bound, *(ROOT / source for source in copied())]:
        assert path.exists(), path


def test_the_checkout_lies_read_only_over_the_images_copy_of_it():
    for name in [*AIRFLOW, *SPARK]:
        bound = {source: (target, *mode) for source, target, *mode in mounts(name) if source.startswith(".")}
        assert bound == {source: (f"{PROJECT}/{Path(source).name}", "ro") for source in bound}
        assert {Path(source).name for source in bound} <= set(copied())


def test_the_named_volumes_are_those_in_use():
    assert set(COMPOSE["volumes"]) == {src for name in SERVICES for src, *_ in mounts(name) if not src.startswith(".")}


def test_ports_open_on_loopback_only_and_never_twice():
    published = [port.rsplit(":", 1)[0] for service in SERVICES.values() for port in service.get("ports", [])]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)
    assert len(published) == len(set(published))


def test_services_wait_for_services_that_exist_always_start_and_can_say_that_they_are_ready():
    for name, service in SERVICES.items():
        for other, rule in service.get("depends_on", {}).items():
            assert "profiles" not in SERVICES[other], (name, other)
            assert rule["condition"] != "service_healthy" or "healthcheck" in SERVICES[other], (name, other)
    assert {name for name, service in SERVICES.items() if "healthcheck" not in service} == {"airflow-init"}


# Versions


def test_images_are_pinned_to_the_versions_that_the_project_is_tested_with():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    airflow = next(pin.split("==")[1] for pin in extras["airflow"] if pin.startswith("apache-airflow=="))
    pom = ET.parse(ROOT / "sandbox" / "pom.xml")  # noqa: S314 - our own file
    kafka = pom.findtext(".//{*}properties/{*}kafka.version")
    assert re.findall(r"^FROM (\S+)$", DOCKERFILE, re.MULTILINE) == [f"apache/airflow:{airflow}-python3.12"]
    assert {SERVICES[name]["image"] for name in KAFKA} == {f"apache/kafka:{kafka}"}
    assert re.fullmatch(r"postgres:\d+\.\d+", SERVICES["postgres"]["image"])


def test_one_image_that_is_built_once_runs_airflow_and_spark():
    assert {SERVICES[name]["image"] for name in [*AIRFLOW, *SPARK]} == {"kafka-rebalance:local"}
    assert [name for name, service in SERVICES.items() if "build" in service] == ["airflow-init"]


# Airflow


def test_every_airflow_setting_exists_in_airflow():
    from airflow.configuration import conf

    known = {
        f"AIRFLOW__{section}__{option}".upper()
        for section, described in conf.configuration_description.items()
        for option in described["options"]
    }
    assert {key for name in AIRFLOW for key in environment(name) if key.startswith("AIRFLOW__")} <= known


def test_every_other_environment_name_is_read_by_someone():
    rest = {key for name in [*AIRFLOW, *SPARK] for key in environment(name) if not key.startswith("AIRFLOW__")}
    assert rest == {
        "AIRFLOW_ADMIN_PASSWORD",  # by the command of airflow-init
        "AIRFLOW_CONN_KAFKA_DEFAULT",
        "AIRFLOW_CONN_SPARK_DEFAULT",
        "SPARK_LOCAL_HOSTNAME",
    }
    assert environment("postgres").keys() == {"POSTGRES_USER", "POSTGRES_DB", "POSTGRES_PASSWORD"}


def test_the_connections_of_the_dag_lead_to_the_brokers_and_to_the_spark_master(monkeypatch: pytest.MonkeyPatch):
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

    from kafka_rebalance_airflow.hooks.kafka_admin import KafkaAdminHook

    spec = importlib.util.spec_from_file_location("compose_dag", ROOT / "dags" / "kafka_rebalance.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for key, value in environment("airflow-scheduler").items():
        if key.startswith("AIRFLOW_CONN_"):
            monkeypatch.setenv(key, value)
    kafka = KafkaAdminHook(module.dag.params["kafka_conn_id"]).settings()
    spark = SparkSubmitHook(conn_id=module.dag.get_task("compute_placement")._conn_id)._resolve_connection()
    running = [environment(name) for name in BROKERS if "profiles" not in SERVICES[name]]
    assert kafka == {"bootstrap_servers": [listeners(env["KAFKA_ADVERTISED_LISTENERS"])["BROKER"] for env in running]}
    assert (spark["master"], spark["deploy_mode"]) == ("spark://spark-master:7077", "client")


def test_airflow_and_spark_see_the_artifacts_at_the_same_path():
    path = urlsplit(environment("airflow-scheduler")["AIRFLOW__KAFKA_REBALANCE__ARTIFACTS"]).path
    for name in [*AIRFLOW, *SPARK]:
        assert ["artifacts", path] in mounts(name)
    owned = re.search(r"install --directory --owner=airflow (.+)$", DOCKERFILE.replace("\\\n", ""), re.MULTILINE)[1]
    assert {path, "/opt/airflow/auth"} <= set(owned.split())


def test_airflow_finds_its_database_its_dags_and_its_api_server():
    settings = environment("airflow-scheduler")
    database = make_url(settings["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"])
    postgres = environment("postgres")
    assert database.host in SERVICES
    assert (database.username, database.password, database.database) == tuple(
        postgres[f"POSTGRES_{part}"] for part in ("USER", "PASSWORD", "DB")
    )
    assert urlsplit(settings["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"]).netloc == "airflow-api-server:8080"
    assert settings["AIRFLOW__CORE__DAGS_FOLDER"] == f"{PROJECT}/dags"
    assert settings["AIRFLOW__CORE__PLUGINS_FOLDER"] == f"{PROJECT}/plugins"
    assert SERVICES["airflow-api-server"]["ports"] == [f"{urlsplit(settings['AIRFLOW__API__BASE_URL']).netloc}:8080"]


def test_the_link_to_spark_leads_to_where_its_master_is_published(monkeypatch: pytest.MonkeyPatch):
    from kafka_rebalance_airflow.links import SparkUiLink

    monkeypatch.setenv(name := "AIRFLOW__KAFKA_REBALANCE__SPARK_UI", environment("airflow-scheduler")[name])
    link = urlsplit(SparkUiLink().get_link(None, ti_key=None))
    assert SERVICES["spark-master"]["ports"] == [f"{link.netloc}:8080"]


def test_airflow_init_gives_the_admin_the_password_of_dot_env(monkeypatch: pytest.MonkeyPatch):
    settings = environment("airflow-init")
    monkeypatch.setenv("AIRFLOW_ADMIN_PASSWORD", settings["AIRFLOW_ADMIN_PASSWORD"])
    (_, *program, _, file) = next(command for command in commands("airflow-init") if command[0] == "python")
    assert json.loads(run(sys.executable, *program)) == {"admin": settings["AIRFLOW_ADMIN_PASSWORD"]}
    assert file == settings["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"]
    assert settings["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS"] == "admin:admin"


@pytest.mark.parametrize("name", AIRFLOW)
def test_airflow_knows_the_commands(name: str):
    from airflow.cli.cli_parser import get_parser

    called = [command for command in commands(name) if command[0] == "airflow"]
    assert called
    for command in called:
        assert callable(get_parser().parse_args(command[1:]).func)


def test_the_other_commands_are_those_of_their_images():
    first = {command[0] for name in SERVICES for command in commands(name)}
    kafka = "/opt/kafka/bin/kafka-cluster.sh"
    assert first == {"airflow", "umask", "python", "curl", "spark-class", "pg_isready", kafka}


# Spark


@pytest.mark.parametrize("name", SPARK)
def test_spark_has_the_class_and_the_service_is_reached_by_its_own_name(name: str):
    program, main_class, *options = next(commands(name))
    assert (spark_home() / "bin" / program).is_file()
    assert f"{main_class.replace('.', '/')}.class" in spark_core().namelist()
    assert options[options.index("--host") + 1] == name
    assert name == "spark-master" or options[-1] == "spark://spark-master:7077"
    health_check = list(commands(name))[-1]
    assert urlsplit(health_check[-1]).port == int(options[options.index("--webui-port") + 1])


def test_sparks_driver_and_executors_are_told_their_host_and_python_by_names_that_spark_reads():
    assert environment("airflow-scheduler")["SPARK_LOCAL_HOSTNAME"] == "airflow-scheduler"
    assert SERVICES["airflow-scheduler"]["hostname"] == "airflow-scheduler"
    assert "ENV PYSPARK_PYTHON=python" in DOCKERFILE
    names = {b"SPARK_LOCAL_HOSTNAME", b"PYSPARK_PYTHON"}
    with spark_core() as jar:
        classes = (jar.read(entry) for entry in jar.namelist() if entry.endswith(".class"))
        found = {name for code in classes for name in names if name in code}
    assert found == names


def spark_home() -> Path:
    return Path(importlib.util.find_spec("pyspark").origin).parent


def spark_core() -> zipfile.ZipFile:
    return zipfile.ZipFile(next((spark_home() / "jars").glob("spark-core_*.jar")))
