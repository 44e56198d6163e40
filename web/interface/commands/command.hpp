// Commands of the program on a page, by the names of lockstep.options: options and files in, the document and files out.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "../options.hpp"
#include "../page_context.hpp"
#include "core/platform/web/memory_files.hpp"

namespace lockstep::web {

/// The files of one call: those of the member `files`, handles by names, and what the call writes.
class CallFiles {
 public:
  explicit CallFiles(const Json& request);
  ~CallFiles();
  CallFiles(const CallFiles&) = delete;
  CallFiles& operator=(const CallFiles&) = delete;
  /// Handles of the written files by name.
  Json written() const;

 private:
  std::map<std::string, Array> given_;
  platform::MemoryFiles files_;
};

/// The page's onProgress gets how far a call is, about as often as pages draw, and ends the call by giving false: InputError.
using PageProgress = std::function<void(int64_t done, int64_t total)>;
PageProgress page_progress(std::string where);

struct PageCommand : NamedSchema {
  bool reports = false;  // progress
};
/// All commands with their options, in the order of adding.
std::vector<PageCommand>& commands();

/// work(context, options) or work(context, options, progress) gives a result with a document; `name` is "solve.fit".
template <class Options, class Work>
void add_command(Calls& calls, const char* name, Work work) {
  constexpr bool kReports = std::is_invocable_v<Work, Context&, Options&, const PageProgress&>;
  commands().push_back({{name, &schema_of<Options>()}, kReports});
  calls[name] = [where = std::string("lockstep.") + name, work](const Json& request) {
    const CallFiles files(request);
    PageContext context(request);
    Json answer = with_options<Options>(request, where.c_str(), [&](Options& o) {
      if constexpr (kReports)
        return Json(document_of(work(*context, o, page_progress(where))));
      else
        return Json(document_of(work(*context, o)));
    });
    answer["files"] = files.written();
    answer.update(context.status());
    return answer;
  };
}

}  // namespace lockstep::web
