// Our own NVTX tool. NVTX loads it if NVTX_INJECTION64_PATH names it. It writes each event as a
// JSON line to the file that LLOYDBENCH_NVTX_LOG names. Nsight Systems receives the same calls.
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>

namespace {

std::FILE* log_file() {
  static std::FILE* file = [] {
    const char* path = std::getenv("LLOYDBENCH_NVTX_LOG");
    return path == nullptr ? nullptr : std::fopen(path, "ae");
  }();
  return file;
}

// A handle is the address of the name.
std::deque<std::string>& names() {
  static std::deque<std::string> all;
  return all;
}

nvtxDomainHandle_t create_domain(const char* name) {
  return reinterpret_cast<nvtxDomainHandle_t>(&names().emplace_back(name));
}

nvtxStringHandle_t register_string(nvtxDomainHandle_t, const char* text) {
  return reinterpret_cast<nvtxStringHandle_t>(&names().emplace_back(text));
}

void name_category(nvtxDomainHandle_t, std::uint32_t category, const char* name) {
  std::fprintf(log_file(), "{\"event\": \"category\", \"category\": %u, \"name\": \"%s\"}\n",
               category, name);
}

int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  const bool registered = event->messageType == NVTX_MESSAGE_TYPE_REGISTERED;
  const std::string text = registered
                               ? *reinterpret_cast<const std::string*>(event->message.registered)
                               : std::string(event->message.ascii);
  std::fprintf(log_file(),
               "{\"event\": \"push\", \"domain\": \"%s\", \"category\": %u, \"message\": \"%s\", "
               "\"registered\": %s, \"payload\": %lld}\n",
               reinterpret_cast<const std::string*>(domain)->c_str(), event->category, text.c_str(),
               registered ? "true" : "false", static_cast<long long>(event->payload.llValue));
  return 0;
}

int pop(nvtxDomainHandle_t) {
  std::fprintf(log_file(), "{\"event\": \"pop\"}\n");
  std::fflush(log_file());
  return 0;
}

template <typename Function>
void install(NvtxFunctionTable table, unsigned which, Function* function) {
  *table[which] = reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

extern "C" int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table) {
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr || log_file() == nullptr ||
      !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size))
    return 0;
  install(table, NVTX_CBID_CORE2_DomainCreateA, create_domain);
  install(table, NVTX_CBID_CORE2_DomainRegisterStringA, register_string);
  install(table, NVTX_CBID_CORE2_DomainNameCategoryA, name_category);
  install(table, NVTX_CBID_CORE2_DomainRangePushEx, push);
  install(table, NVTX_CBID_CORE2_DomainRangePop, pop);
  return 1;
}
