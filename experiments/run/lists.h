// What run_experiment prints instead of running a sweep.
#pragma once

#include "experiments/spec/spec.h"
#include "kernels/core/device.h"

namespace lloyd {

/// --dry-run: the points, and whether they can run here.
void print_dry_run(const Spec& spec, bool json);
/// --list-versions.
void list_versions(const DeviceQuery& gpus, int device, bool json);
/// --list-axes: every axis with its default, its range and what it means (kernels/core/axes.inc).
void list_axes(bool json);
/// --doctor.
void print_doctor(const DeviceQuery& gpus, int device, bool json);

}  // namespace lloyd
