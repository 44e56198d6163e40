#include "documents.hpp"

#include <cmath>

namespace lockstep::python {

nb::object from_document(const nlohmann::ordered_json& document) {
  using Type = nlohmann::ordered_json::value_t;
  switch (document.type()) {
    case Type::object: {
      nb::dict d;
      for (const auto& [name, value] : document.items())
        d[nb::str(name.data(), name.size())] = from_document(value);
      return d;
    }
    case Type::array: {
      nb::list l;
      for (const auto& value : document) l.append(from_document(value));
      return l;
    }
    case Type::string: {
      const auto& text = document.get_ref<const std::string&>();
      return nb::str(text.data(), text.size());
    }
    case Type::boolean: return nb::bool_(document.get<bool>());
    case Type::number_integer: return nb::int_(document.get<int64_t>());
    case Type::number_unsigned: return nb::int_(document.get<uint64_t>());
    case Type::number_float:
      if (const double value = document.get<double>(); std::isfinite(value)) return nb::float_(value);
      return nb::none();
    default: return nb::none();
  }
}

}  // namespace lockstep::python
