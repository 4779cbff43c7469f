// A fake NVML with one GPU ("GPU-fake"). LD_LIBRARY_PATH makes programs load it as
// libnvidia-ml.so.1. It writes each request to change the clocks as a line to the file
// $FAKE_NVML_LOG. An environment variable controls it:
//   FAKE_NVML_FAIL=function=code     the function that fails, and its error code
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

namespace {

int device;

int result_of(const std::string& function) {
  const char* text = std::getenv("FAKE_NVML_FAIL");
  if (text == nullptr || std::string(text).rfind(function + "=", 0) != 0) return 0;
  return std::atoi(text + function.size() + 1);
}

int note(const std::string& function, const std::string& line) {
  if (const int code = result_of(function)) return code;
  if (const char* file = std::getenv("FAKE_NVML_LOG"))
    std::ofstream(file, std::ios::app) << line << std::endl;
  return 0;
}

}  // namespace

extern "C" {
int nvmlInit_v2() { return result_of(__func__); }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetHandleByUUID(const char* uuid, void** handle) {
  *handle = &device;
  return std::strcmp(uuid, "GPU-fake") == 0 ? 0 : 6;
}
int nvmlDeviceGetMaxClockInfo(void*, unsigned kind, unsigned* mhz) {
  *mhz = kind == 1 ? 1980 : 3201;
  return 0;
}
int nvmlDeviceGetSupportedGraphicsClocks(void*, unsigned memory, unsigned* count, unsigned* mhz) {
  if (memory != 3201) return 2;
  *count = 3;
  mhz[0] = 1980;
  mhz[1] = 1575;
  mhz[2] = 345;
  return result_of(__func__);
}
int nvmlDeviceSetGpuLockedClocks(void*, unsigned low, unsigned high) {
  return note(__func__, "lock " + std::to_string(low) + " " + std::to_string(high));
}
int nvmlDeviceResetGpuLockedClocks(void*) { return note(__func__, "reset"); }
int nvmlDeviceGetNvLinkState(void*, unsigned link, unsigned* active) {
  *active = link < 4 ? 1 : 0;
  return link < 6 ? 0 : 2;
}
int nvmlDeviceGetP2PStatus(void*, void*, int over, int* status) {
  *status = over == 2 ? 0 : 1;
  return 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void*, unsigned long long* millijoules) {
  static unsigned long long used = 5000;
  *millijoules = used += 1500;
  return result_of(__func__);
}
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, void* infos) {
  struct Info {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
  };
  *count = 2;
  static_cast<Info*>(infos)[0] = {
      .pid = 11, .used_bytes = 0, .gpu_instance = 0, .compute_instance = 0};
  static_cast<Info*>(infos)[1] = {
      .pid = 12, .used_bytes = 0, .gpu_instance = 0, .compute_instance = 0};
  return 0;
}
int nvmlDeviceGetProcessUtilization(void*, void* samples, unsigned* count, unsigned long long) {
  struct Use {
    unsigned pid;
    unsigned long long time_stamp;
    unsigned sm, memory, encoder, decoder;
  };
  auto* use = static_cast<Use*>(samples);
  *count = 3;
  use[0] = {11, 0, 40, 0, 0, 0};
  use[1] = {12, 0, 20, 0, 0, 0};
  use[2] = {12, 1, 40, 0, 0, 0};
  return result_of(__func__);
}
}
