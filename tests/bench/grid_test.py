#!/usr/bin/env python3
"""The grids of bench/grid: what they train, what they make of the rows, and both with the real program and a tiny model.

  grid_test.py --build DIR     a build folder, whose bin/shoal trains
"""
import argparse
import json
import os
import pathlib
import random
import runpy
import subprocess
import sys
import tempfile
import tomllib
import types

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
from cases import Cases  # noqa: E402

grid = types.SimpleNamespace(**runpy.run_path(str(ROOT / "bench/grid")))
TINY = "--tokens 512 --layers 2 --heads 2 --sequences 2 --stages 2 --dim 16 --positions 16 --inner-batch 64 --seed 1".split()


def refuses(call, *words):
    try:
        call(*words)
    except grid.GridError as error:
        return str(error)
    return ""


class GridTest:
    def __init__(self, build, folder):
        self.build, self.folder, self.cases = build, pathlib.Path(folder), Cases("GridTest")
        for name, letters, seed in (("text", "abcdefgh ", 2), ("other", "ABCDEFGH ", 3), ('a "quoted" text', "x", 4)):
            (self.folder / name).write_text("".join(random.Random(seed).choices(letters, k=4000)))

    def setting(self, kind, *more):
        return grid.arguments([kind, "--text", str(self.folder / 'a "quoted" text'), *more])

    # ---- what is trained ----
    def codecs(self):
        self.cases.equal("both ways", grid.codec_pair("int4-hadamard"), ("int4-hadamard", "int4-hadamard"))
        self.cases.equal("each way", grid.codec_pair("aq2/int4"), ("aq2", "int4"))
        for wrong in "", "aq3/int8", "int4/", "/int4", "auto", "int8/auto", "int8/int8/int8", "aq4", "int8/aq2":
            self.cases.holds(f"{wrong!r} is refused", refuses(grid.codec_pair, wrong))
        self.cases.holds("a hint", "--codec aq4/int8" in refuses(grid.codec_pair, "aq4"))

    def delays(self):
        counts = lambda text, stages: [stage["counts"] for stage in json.loads(grid.delays_of_means(text, stages))["stages"]]  # noqa: E731
        self.cases.equal("one mean", counts("0.25", 2), [[750_000, 250_000]] * 2)
        self.cases.equal("one a stage", counts("2/1.5/0", 3), [[0, 0, 1_000_000], [0, 500_000, 500_000], [1_000_000]])
        for wrong in "", "x", "1/2", "-1", "63", "nan", "inf", "1/2/x", "1,5":
            self.cases.holds(f"{wrong!r} is refused", refuses(grid.delays_of_means, wrong, 3))

    def run_files(self):
        s = self.setting("convergence", "--tune-text", str(self.folder / "other"), "--set", "optimizer.beta1=0.95", 'wire.forward="raw"', "model.layers=8")
        file = tomllib.loads(grid.convergence_toml(s, "train", ("aq2", "int4"), 3, ""))
        self.cases.equal("text", file["data"]["path"], s.text)
        self.cases.equal("what --set says", (file["optimizer"]["beta1"], file["model"]["layers"]), (0.95, 8))
        self.cases.equal("what the cell is about", file["wire"], {"forward": "aq2", "backward": "int4"})
        self.cases.equal("points", file["data"]["validate_every"], s.tokens // s.inner_batch // s.points)
        tuned = tomllib.loads(grid.convergence_toml(s, "fine-tune", ("int8", "int8"), 3, '/models/"one"'))
        self.cases.equal("its shapes are the folder's", tuned["model"], {"from": '/models/"one"', "positions": 64})
        self.cases.equal("its end", (tuned["end"]["tokens"], tuned["data"]["path"], tuned["optimizer"]["lr"]), (500_000, s.tune_text, 1e-3))
        narrow, table = s.boundary_table, lambda: tomllib.loads(grid.convergence_toml(s, "train", ("int8", "int8"), 3, "", "k 16"))["model"]
        self.cases.equal("its boundary", [table()[key] for key in ("boundary", "boundary_table")], [16, narrow])
        s.boundary_table = 8
        self.cases.equal("its table", table()["boundary_table"], 8)
        control = tomllib.loads(grid.convergence_toml(self.setting("convergence", "--layers", "8"), "train", grid.UNCODED, 3, "", "control"))
        self.cases.equal("the layers of a stage", (control["model"]["layers"], control["pipeline"]["stages"], "boundary" in control["model"]), (2, 1, False))
        late = tomllib.loads(grid.staleness_toml(self.setting("staleness"), "0", 2e-3, 3))
        self.cases.equal("no look-ahead is written", late["optimizer"], {"lr": 2e-3, "look_ahead": 0})
        for wrong in "beta1=1", "optimizer.beta1", ".x=1", "optimizer.=1", "a=b.c":
            s.sets = [wrong]
            self.cases.holds(f"{wrong!r} is refused", refuses(grid.convergence_toml, s, "train", grid.UNCODED, 1, ""))

    def keys(self):
        s = self.setting("convergence", "--tune-text", str(self.folder / "other"))
        key = lambda phase, codecs=("int8", "int8"), seed=1: grid.convergence_key(s, phase, codecs, seed)  # noqa: E731
        trained, tuned = key("train"), key("fine-tune")
        self.cases.equal("its length", len(trained), 16)
        self.cases.equal("all differ", len({trained, tuned, key("train", ("int8", "int4")), key("fine-tune", seed=2),
                                            *(grid.convergence_key(s, "train", ("int8", "int8"), 1, model) for model in ("k 16", "k 8", "control"))}), 7)
        s.tune_tokens *= 2
        self.cases.equal("fine-tuning alone", (key("train") == trained, key("fine-tune") == tuned), (True, False))
        s.tune_tokens //= 2
        s.tokens *= 2
        self.cases.holds("what its model learnt before", key("fine-tune") != tuned)

    # ---- what rows come to ----
    @staticmethod
    def row(phase, codec, seed, validation, model=""):
        return {"key": "0123456789abcdef", "phase": phase, "text": "text", "model": model, "forward": codec, "backward": codec, "seed": seed, "tokens": 100,
                "validation": validation, "train_loss": 2.0, "forward_bytes": 60.0, "backward_bytes": 40.0, "key_frames": 1, "delta_frames": 3,
                "curve": [[50.0, validation + 1, 4.0], [100.0, validation, 3.0]], "seconds": 1.5}

    def torn_rows(self):
        file = grid.Rows(str(self.folder / "none.jsonl"), "shoal.convergence/1", grid.CONVERGENCE_FORM)
        text = file.text(self.row("fine-tune", "int8", 7, 2.5))
        self.cases.equal("as it was written", file.text(file.parsed(text)), text)
        self.cases.equal("torn anywhere", [length for length in range(len(text) - 1) if file.parsed(text[:length])], [])
        self.cases.equal("of another schema", file.parsed(text.replace("convergence/1", "convergence/2")), None)
        file.usual = {"model": ""}
        self.cases.equal("of an earlier release", file.parsed(text.replace('"model":"",', ""))["model"], "")

    def result(self):
        printed = {"tokens": 200, "val_loss": 2.5, "loss_end": 2.25, "wire": {"forward_bytes": 400, "backward_bytes": 100, "key_frames": 4, "delta_frames": 12}}
        events = [{"event": "start"}, {"event": "train", "loss": 5, "targets": 50}, {"event": "train", "loss": 4, "targets": 100},
                  {"event": "estimate", "loss": 3, "targets": 64}, {"event": "train", "loss": 2, "targets": 200},
                  {"event": "validation", "loss": 2.5, "targets": 64}, {"event": "end", "targets": 200}]
        row = grid.convergence_row(printed, map(json.dumps, events))
        self.cases.equal("bytes a token", (row["forward_bytes"], row["backward_bytes"]), (2, 0.5))
        self.cases.equal("curve", row["curve"], [[100, 3, 4.5], [200, 2.5, 2]])
        self.cases.holds("no result", refuses(grid.convergence_row, {"tokens": 200}, []))

    def noise(self):
        losses = {"raw": (2.0, 2.2, 2.4), "int8": (2.1, 2.2, 2.35), "int2": (2.3, 2.7, 2.9)}
        rows = [self.row("train", codec, seed + 1, losses[codec][seed]) for seed in range(3) for codec in losses]
        means = grid.convergence_means(rows + [self.row("fine-tune", "int8", 1, 1.5)])
        raw, int8, int2, tuned = means
        self.cases.equal("raw", (round(raw["validation"], 9), raw["lowest"], raw["highest"], raw["seeds"], raw["delta_share"]), (2.2, 2.0, 2.4, 3, 0.75))
        self.cases.equal("its curve", round(raw["curve"][0][1], 9), 3.2)
        self.cases.equal("int8", [round(int8[name], 6) for name in ("apart", "apart_least", "apart_most", "sigmas")], [0.016667, -0.05, 0.1, 0.083333])
        self.cases.equal("int2", (round(int2["ratio"], 9), round(int2["sigmas"], 6)), (round(7.9 / 6.6, 9), round(1.3 / 3 / 0.2, 6)))
        self.cases.equal("noise", (int8["within_noise"], int2["within_noise"], tuned["ratio"]), (True, False, None))
        table = grid.convergence_table(means)
        for text in "train: text, 100 tokens, 3 seeds", "+0.4333    +2.2     no", "fine-tune: text, 100 tokens, 1 seed\n", "75 %":
            self.cases.holds(text, text in table, table)
        one = grid.convergence_means([self.row("train", "raw", 1, 2.0), self.row("train", "int8", 1, 2.1)])[1]
        self.cases.equal("one seed has no noise", (round(one["apart"], 9), one["sigmas"], one["within_noise"]), (0.1, None, None))
        other = grid.convergence_means([self.row("train", "raw", 1, 2.0), self.row("train", "int8", 2, 2.1)])[1]
        self.cases.equal("other seeds are not compared", other["apart"], None)

    def depth(self):
        losses = {("raw", ""): 2.0, ("int8", "k 8"): 2.1, ("raw", "control"): 2.5}
        means = grid.convergence_means([self.row("train", codec, 1, loss, model) for (codec, model), loss in losses.items()])
        self.cases.equal("its ratio", round(means[1]["ratio"], 9), 1.05)
        self.cases.equal("what it kept", [round(row["kept"], 9) for row in means], [1, 0.8, 0])
        table = grid.convergence_table(means)
        self.cases.holds("its table", "k 8      int8" in table and "   0.800\n" in table, table)
        alone = grid.convergence_means([self.row("train", "raw", 1, 2.0), self.row("train", "raw", 1, 1.9, "control")])
        self.cases.equal("a control below shows nothing", [row["kept"] for row in alone], [None, None])

    def best_rates(self):
        told = [("0", "0", 1e-3, 2.2), ("0", "0", 1e-3, 2.4), ("0", "0", 2e-3, 2.0), ("0", "0", 2e-3, 2.2), ("0", "0", 4e-3, 3.0), ("0", "0", 4e-3, 3.0),
                ("2", "0", 1e-3, 2.9), ("2", "0", 2e-3, 3.5), ("2", "1", 1e-3, 2.5), ("9", "1", 1e-3, 2.5)]
        arms = grid.best_of_arms([dict(zip(("delay", "look_ahead", "lr", "validation"), one)) for one in told])
        self.cases.equal("the best", [(arm["lr"], arm["seeds"], arm["at_edge"]) for arm in arms], [(2e-3, 2, False), (1e-3, 1, True), (1e-3, 1, False), (1e-3, 1, False)])
        self.cases.equal("recovered", [arm["recovered"] and round(arm["recovered"], 9) for arm in arms], [None, 0, 0.5, None])
        table = grid.staleness_table(arms)
        self.cases.holds("its table", "50 %" in table and "0.001*" in table, table)

    def rules(self):
        s = self.setting("rounds", "--tokens", "81920")
        file = lambda *arm: tomllib.loads(grid.rounds_toml(s, *arm))  # noqa: E731
        self.cases.equal("alone it has a share", [file("alone", 4, 1, "-", 1)[section][key] for section, key in (("end", "tokens"), ("pipeline", "replicas"))],
                         [20480, 1])
        together = file("together", 4, 1, "-", 1)
        self.cases.equal("as one", (together["end"]["tokens"], together["pipeline"]["replicas"], together["sync"]["inner_batch"]), (81920, 4, 1024))
        self.cases.equal("a rule", [file("cold", 4, 30, "int4", 1)["sync"][key] for key in ("rule", "inner_steps", "outer_momentum", "payload")],
                         ["diloco", 30, 0.5, "int4"])
        self.cases.equal("warm", [file("warm", 4, 30, "int8", 1)["sync"][key] for key in ("warm_steps", "microbatches_per_step")], [2, 8])
        self.cases.equal("of every step", file("allreduce", 4, 1, "fp32", 1)["sync"], {"rule": "allreduce", "inner_batch": 1024, "inner_steps": 1, "microbatches_per_step": 8})
        s.rule = ["other"]
        self.cases.holds("another rule is refused", '"other" is none of allreduce' in refuses(grid.run_rounds, s, self.folder))
        told = [("alone", 2.6, 2.4), ("together", 2.0, 2.0), ("diloco", 2.2, 2.0)]
        rows = [{"rule": rule, "replicas": 2, "inner_steps": 1, "payload": "-", "seed": seed, "validation": losses[seed], "bytes": 3.0}
                for rule, *losses in told for seed in range(2)]
        means = grid.means_of_rules(rows)
        self.cases.equal("closed", [round(row["closed"], 9) for row in means], [0, 1, 0.8])
        self.cases.equal("ratio", round(means[2]["ratio"], 9), 1.05)
        self.cases.holds("its table", "80 %" in grid.rounds_table(means), grid.rounds_table(means))
        level = grid.means_of_rules([{**row, "validation": 2.0} for row in rows])
        self.cases.equal("no gap", [row["closed"] for row in level], [None] * 3)

    # ---- with the real program ----
    def grid(self, *words, code=0):
        """The rows' file afterwards, what was printed, what was said."""
        rows = self.folder / "rows.jsonl"
        done = subprocess.run([ROOT / "bench/grid", words[0], "--text", self.folder / "text", "--rows", rows, "--shoal", self.build / "bin/shoal", *TINY,
                               *words[1:], "data.validation_samples=4"], capture_output=True, text=True)
        self.cases.equal("exit code", done.returncode, code)
        return rows.read_text() if rows.exists() else "", done.stdout, done.stderr

    def goes_on(self, *words):
        """Each cell is trained once, and again only where a killed grid left its row torn."""
        (self.folder / "rows.jsonl").unlink(missing_ok=True)
        text, table, _ = self.grid(*words)
        rows = [json.loads(line) for line in text.splitlines()]
        self.cases.equal("nothing is trained again", self.grid(*words)[:2], (text, table))
        (self.folder / "rows.jsonl").write_text(text[:-10])
        for model in (self.folder / "models").glob("*/*"):
            model.unlink()
        for model in (self.folder / "models").glob("*"):
            model.rmdir()
        mended, again, _ = self.grid(*words)
        self.cases.equal("lines", mended.count("\n"), len(rows) + 1)
        self.cases.equal("the last", json.loads(mended.splitlines()[-1])["validation"], rows[-1]["validation"])
        self.cases.equal("its table", again, table)
        return rows, table

    def convergence(self):
        rows, table = self.goes_on("convergence", "--tune-text", self.folder / "other", "--tune-tokens", "256", "--points", "4", "--codec", "raw", "int2/int4",
                                   "--models", self.folder / "models", "--set")
        self.cases.holds("its table", "fine-tune: other, 256 tokens, 1 seed" in table, table)
        self.cases.equal("rows", [(row["phase"], row["forward"]) for row in rows], [("train", "raw"), ("train", "int2"), ("fine-tune", "raw"), ("fine-tune", "int2")])
        self.cases.holds("losses", all(row["validation"] > 1 and len(row["curve"]) >= 4 and row["curve"][-1][0] == row["tokens"] for row in rows), rows)
        self.cases.holds("codecs matter", rows[0]["validation"] != rows[1]["validation"] and rows[1]["forward_bytes"] < 0.2 * rows[0]["forward_bytes"], rows)

    def boundary(self):
        rows, table = self.goes_on("convergence", "--codec", "raw", "--boundary", "4,2", "--boundary-table", "8", "--control", "--set")
        self.cases.equal("rows", [(row["model"], row["forward"]) for row in rows], [("", "raw"), ("k 4", "int8"), ("k 2", "int8"), ("control", "raw")])
        self.cases.holds("losses", all(row["validation"] > 1 for row in rows), rows)
        self.cases.holds("what crosses", 0 == rows[3]["forward_bytes"] < rows[2]["forward_bytes"] < rows[1]["forward_bytes"] < 0.2 * rows[0]["forward_bytes"], rows)
        self.cases.holds("its table", "k 4      int8" in table, table)

    def staleness(self):
        rows, table = self.goes_on("staleness", "--delay", "0", "1.5", "--look-ahead", "0", "--lr", "0.01", "--set")
        self.cases.holds("its table", "recovered" in table and "1.5" in table, table)
        self.cases.holds("late gradients are another training", len(rows) == 2 and rows[0]["validation"] != rows[1]["validation"] > 1, rows)

    def rounds(self):
        rows, table = self.goes_on("rounds", "--rule", "allreduce", "diloco", "--replicas", "2", "--inner-steps", "2", "--payload", "fp32", "int8", "--set")
        self.cases.equal("rows", [(row["rule"], row["payload"]) for row in rows],
                         [("alone", "-"), ("together", "-"), ("allreduce", "fp32"), ("diloco", "fp32"), ("diloco", "int8")])
        self.cases.holds("two that share every step are one process", abs(rows[2]["validation"] - rows[1]["validation"]) < 1e-4, rows)
        self.cases.holds("what travels", 0 == rows[0]["bytes"] == rows[1]["bytes"] < rows[4]["bytes"] < 0.3 * rows[3]["bytes"] < rows[2]["bytes"], rows)
        self.cases.holds("its table", "closed" in table and "diloco" in table, table)

    def words_of_solo(self):
        (self.folder / "rows.jsonl").unlink(missing_ok=True)
        for kind, cell in ("convergence", "train raw/raw, seed 1"), ("staleness", "delay 0, lr 0.0005"):
            rows, table, said = self.grid(kind, "--set", "model.heads=3", code=1)
            self.cases.equal("no row", (rows, table), ("", ""))
            self.cases.holds("the cell and solo's words", cell in said and "heads" in said, said)
        said = self.grid("convergence", "--codec", "raw", "aq3/int8", "--set", code=1)[2]
        self.cases.holds("before anything is trained", '"aq3" is none of raw, int8' in said, said)

    def run(self):
        for name, case in (("ACodecIsOfBothDirectionsOrOfOne", self.codecs), ("MeansBecomeTheWholeNumbersAroundThem", self.delays),
                           ("ItsRunFilesSayWhatACellIsAbout", self.run_files), ("AKeyNamesWhatIsTrainedAndWhatWasLearntBefore", self.keys),
                           ("ARowIsReadAsItWasWritten", self.torn_rows), ("ARowIsWhatSoloPrintedAndItsEvents", self.result),
                           ("NoiseIsTheSpreadOfTheUncodedSeeds", self.noise), ("TheBestRateOfEachArmCountsAndTheShareIsOfTheGap", self.best_rates),
                           ("WhatDepthGainsIsKeptInAShare", self.depth), ("ConvergenceGoesOnWhereItWasKilled", self.convergence),
                           ("BoundariesAndTheControlGoOnWhereTheyWereKilled", self.boundary), ("StalenessGoesOnWhereItWasKilled", self.staleness),
                           ("ARuleIsComparedWithOneReplicaAndWithOneProcess", self.rules), ("RoundsGoOnWhereTheyWereKilled", self.rounds),
                           ("ItSaysWhatSoloSaid", self.words_of_solo)):
            self.cases.run(name, case)
        return any(failures for _, failures in self.cases.done)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build/release", type=pathlib.Path, metavar="DIR")
    build = parser.parse_args().build
    report = os.environ.pop("GTEST_OUTPUT", "")
    with tempfile.TemporaryDirectory() as folder:
        test = GridTest(build, folder)
        try:
            return int(test.run())
        finally:
            test.cases.report(report)


if __name__ == "__main__":
    sys.exit(main())
