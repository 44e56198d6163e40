// Names of types and literals in CUDA C++, and the access functions for elements that are not plain.
#pragma once

#include <string>
#include <string_view>

#include "compile/clike/printer.hpp"

namespace lockstep::clike {

/// "float", "u32" …
std::string_view cuda_type(Type type);
/// Type of one element in memory: "unsigned short" for f16.
std::string_view cuda_element(Storage storage);
/// "float4"; ls_double4 where CUDA has no type of the kind.
std::string cuda_vector(Type type, int lanes);
Expression cuda_literal(Type type, uint64_t bits);

enum class CachePath : uint8_t { plain, read_only, streaming };
/// Name and definition of the function that loads `lanes` elements, e.g. ls_load_f16x4_nc.
std::string load_function_name(Storage storage, int lanes, CachePath path);
std::string load_function(Storage storage, int lanes, CachePath path);
/// The same for storing: ls_store_f32x4.
std::string store_function_name(Storage storage, int lanes, bool streaming);
std::string store_function(Storage storage, int lanes, bool streaming);

/// Text of one element as read with this path, and as converted to its value type.
std::string read_through(CachePath path, std::string_view pointer);
Expression from_storage(Storage storage, const Expression& element);
Expression to_storage(Storage storage, const Expression& value);

}  // namespace lockstep::clike
