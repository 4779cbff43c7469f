/* mine_c: an external version in C, without a library. kernels/external/README.md has the protocol.
 *
 *   mine_c describe        says what the version can do
 *   mine_c serve FOLDER    answers requests, one JSON object per line; arrays are files in FOLDER
 */
#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char description[] =
    "{\"name\": \"mine_c\", \"family\": \"mine\", \"backend\": \"cpu\", \"parent\": \"\", "
    "\"axes\": [],"
    " \"precisions\": [\"fp32\"], \"distance\": \"direct\", \"study\": \"\","
    " \"summary\": \"Lloyd's loop in C\", \"available\": true, \"reason\": \"\"}";

static void fail(const char* what) {
  perror(what); /* standard error goes to the run's log.txt */
  exit(1);
}

static void* allocate(size_t count, size_t size) {
  void* memory = calloc(count, size);
  if (memory == NULL) fail("memory");
  return memory;
}

/* The number after "key": in a request. Requests are flat, and no value contains a key. */
static double number(const char* request, const char* key) {
  char quoted[32];
  snprintf(quoted, sizeof quoted, "\"%s\":", key);
  const char* found = strstr(request, quoted);
  return found == NULL ? 0 : strtod(found + strlen(quoted), NULL);
}

static void load(const char* name, float* values, size_t count) {
  FILE* file = fopen(name, "rb");
  if (file == NULL || fread(values, sizeof *values, count, file) != count) fail(name);
  fclose(file);
}

static void save(const char* name, const void* values, size_t size, size_t count) {
  FILE* file = fopen(name, "wb");
  if (file == NULL || fwrite(values, size, count, file) != count || fclose(file) != 0) fail(name);
}

static size_t n, k, dim;
static float *points, *initial, *centroids;
static double* sums;
static int64_t* counts;
static int32_t* labels;

static void prepare(const char* request) {
  free(points), free(initial), free(centroids), free(sums), free(counts), free(labels);
  n = (size_t)number(request, "n");
  k = (size_t)number(request, "k");
  dim = (size_t)number(request, "dim");
  points = allocate(n * dim, sizeof *points);
  initial = allocate(k * dim, sizeof *initial);
  centroids = allocate(k * dim, sizeof *centroids);
  sums = allocate(k * dim, sizeof *sums);
  counts = allocate(k, sizeof *counts);
  labels = allocate(n, sizeof *labels);
  load("points.f32", points, n * dim);
  load("centroids.f32", initial, k * dim);
}

static void iterate(void) {
  memset(sums, 0, k * dim * sizeof *sums);
  memset(counts, 0, k * sizeof *counts);
  for (size_t i = 0; i < n; ++i) {
    const float* x = points + i * dim;
    float best = 0;
    for (size_t j = 0; j < k; ++j) {
      float distance = 0;
      for (size_t t = 0; t < dim; ++t) {
        const float difference = x[t] - centroids[j * dim + t];
        distance += difference * difference;
      }
      if (j == 0 || distance < best) { /* a tie keeps the lower index */
        best = distance;
        labels[i] = (int32_t)j;
      }
    }
    ++counts[labels[i]];
    for (size_t t = 0; t < dim; ++t) sums[(size_t)labels[i] * dim + t] += x[t];
  }
  for (size_t c = 0; c < k * dim; ++c) { /* an empty cluster keeps its centroid */
    if (counts[c / dim] > 0) centroids[c] = (float)(sums[c] / (double)counts[c / dim]);
  }
}

static void run(int iterations) {
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  memcpy(centroids, initial, k * dim * sizeof *centroids);
  for (int iteration = 0; iteration < iterations; ++iteration) iterate();
  clock_gettime(CLOCK_MONOTONIC, &end);
  const double solve_ms =
      1e3 * (double)(end.tv_sec - begin.tv_sec) + 1e-6 * (double)(end.tv_nsec - begin.tv_nsec);
  printf("{\"ok\": true, \"iterations\": %d, \"solve_ms\": %.6f}\n", iterations, solve_ms);
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "describe") == 0) {
    puts(description);
    return 0;
  }
  if (argc != 3 || strcmp(argv[1], "serve") != 0 || chdir(argv[2]) != 0) {
    fprintf(stderr, "usage: mine_c describe | serve FOLDER\n");
    return 2;
  }
  setvbuf(stdout, NULL, _IOLBF, 0); /* each answer leaves at once */
  char* request = NULL;
  size_t capacity = 0;
  int iterations = 0;
  while (getline(&request, &capacity, stdin) > 0 && strstr(request, "\"end\"") == NULL) {
    if (strstr(request, "\"prepare\"") != NULL) {
      iterations = (int)number(request, "iterations");
      if (number(request, "tolerance") > 0 || number(request, "min_changes") > 0) {
        puts(
            "{\"ok\": false, \"status\": \"unsupported\","
            " \"reason\": \"runs a fixed number of iterations\"}");
        continue;
      }
      prepare(request);
      puts("{\"ok\": true}");
    } else if (strstr(request, "\"run\"") != NULL) {
      run(iterations);
    } else { /* fetch */
      double* wide = allocate(k * dim, sizeof *wide);
      for (size_t c = 0; c < k * dim; ++c) wide[c] = centroids[c];
      save("labels.i32", labels, sizeof *labels, n);
      save("centroids.f64", wide, sizeof *wide, k * dim);
      free(wide);
      puts("{\"ok\": true}");
    }
  }
  free(request);
  return 0;
}
