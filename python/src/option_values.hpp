// Keyword arguments of Python as options of a schema, whose errors name the arguments.
#pragma once

#include <set>

#include "arrays.hpp"
#include "lockstep/schema.hpp"

namespace lockstep::python {

/// Sets the options that are given; None counts as not given. `others`: arguments that something else takes. Then the schema's
/// rules; options in `had` count as given.
void fill_options(const OptionList& list, void* options, const nb::dict& arguments, const std::string& call,
                  const std::set<std::string>& others = {}, Given had = {});
/// The options that the arguments give, as words of the shell: "--dsm=dsm.tif", "--no-pictures".
std::vector<std::string> words_of(const OptionList& list, const void* options, const nb::dict& arguments);
/// A function's options: name, type, default, choices, help and the rest.
nb::list options_table(const OptionList& list);

/// Options of functions on arrays that are no command's, such as urban.compute_svf.
std::vector<NamedSchema> forecast_array_schemas();
std::vector<NamedSchema> urban_array_schemas();

/// Work with options of keyword arguments on top of `options`, without the interpreter's lock.
template <class Options, class Work>
auto with_options(const nb::dict& arguments, const std::string& call, Work work,
                  const std::set<std::string>& others = {}, const Given& had = {}, Options options = {}) {
  const Schema<Options>& schema = schema_of<Options>();
  fill_options(schema, &options, arguments, call, others, had);
  try {
    const nb::gil_scoped_release free;
    return work(options);
  } catch (const OptionError& e) { throw e.in(schema.in_python(call)); }
}

}  // namespace lockstep::python
