// Prints lists of points, versions, axes and checks.
#pragma once

#include <optional>
#include <vector>

#include "experiments/spec/spec.h"
#include "kernels/core/device.h"

namespace lloyd {

/// --dry-run: the points, or those that are `left` of a resumed run, and whether they can run here.
void print_dry_run(const Spec& spec, const std::optional<std::vector<const Point*>>& left,
                   bool json);
/// --list-versions.
void list_versions(const DeviceQuery& gpus, int device, bool json);
/// --list-axes: every axis with its default, range and meaning (kernels/core/axes.inc).
void list_axes(bool json);
/// --doctor.
void print_doctor(const DeviceQuery& gpus, int device, bool json);

}  // namespace lloyd
