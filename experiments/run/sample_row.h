// Rows of a timing pass: what a sample and its verdict say, and the phases of a solve.
#pragma once

#include "experiments/measure/session.h"
#include "experiments/measure/timing.h"
#include "experiments/measure/verdict.h"
#include "experiments/run/workbench.h"

namespace lloyd {

/// Fills in inertia, regret and the other columns of the verification.
void fill_verdict(Row& row, const Verdict& verdict);

/// A row of measurements.jsonl. `null_reasons` says why a value is null.
Row sample_row(const Workbench& bench, const Point& point, int launch, const Sample& sample,
               const Verdict& verdict);

/// The rows of phases.jsonl for one part of a solve: setup, solve or fetch.
std::vector<Row> phase_rows(const Point& point, const char* part, PhaseTimes& times);

}  // namespace lloyd
