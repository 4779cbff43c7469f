// run_experiment --man.
#pragma once

#include <string>

namespace lloyd {

/// The man page, in the man macros of roff (man(7)).
std::string man_page();

}  // namespace lloyd
