// Results' trees of JSON as dictionaries and lists.
#pragma once

#include <nlohmann/json.hpp>

#include "bind.hpp"

namespace lockstep::python {

/// Objects as dictionaries in their order, arrays as lists; null and numbers that are not finite as None.
nb::object from_document(const nlohmann::ordered_json& document);

}  // namespace lockstep::python
