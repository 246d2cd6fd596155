/* BridgeStan's C interface (version 2) to the functions of the header: what `jitad.export.library` links to them.

   Values are in the order of Stan: the last index moves slowest. Hessians and their products are fourth-order
   differences of the gradients. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "@HEADER@"

#define PUBLIC __attribute__((visibility("default")))

static const char *const NAMES = @NAMES@;
static const char *const ALL_NAMES = @ALL_NAMES@;
static const char *const FREE_NAMES = @FREE_NAMES@;
static const char *const BLOCKS[] = {@BLOCKS@};
static const int SIZES[] = {@SIZES@};          /* how many numbers a parameter has */
static const int PLACES[] = {@PLACES@};        /* where the numbers in the order of Stan lie in C order */
enum { DIM = @DIM@, COUNT = @COUNT@, ALL = @ALL@, PARAMETERS = @PARAMETERS@ };

typedef struct { unsigned seed; } bs_model;
typedef struct { unsigned long long state; } bs_rng;
typedef void (*bs_print)(const char *text, size_t size);

PUBLIC int bs_major_version = @MAJOR@, bs_minor_version = @MINOR@, bs_patch_version = @PATCH@;

static int failed(char **error, const char *words, const char *detail) {
  if (error) {
    size_t size = strlen(words) + strlen(detail) + 1;
    if ((*error = malloc(size))) snprintf(*error, size, "%s%s", words, detail);
  }
  return -1;
}

PUBLIC void bs_free_error_msg(char *message) { free(message); }

PUBLIC bs_model *bs_model_construct(const char *data, unsigned seed, char **error) {
  while (data && *data && strchr(" \t\r\n{}", *data)) data++;
  if (data && *data) {
    failed(error, "the data are part of this library: give none, and export again for others", "");
    return NULL;
  }
  bs_model *model = malloc(sizeof *model);
  if (model) model->seed = seed;
  return model;
}

PUBLIC void bs_model_destruct(bs_model *model) { free(model); }
PUBLIC int bs_set_print_callback(bs_print callback, char **error) { (void)callback; (void)error; return 0; }
PUBLIC const char *bs_name(const bs_model *model) { (void)model; return @NAME@; }
PUBLIC const char *bs_model_info(const bs_model *model) { (void)model; return @INFO@; }
PUBLIC int bs_param_unc_num(const bs_model *model) { (void)model; return DIM; }
PUBLIC const char *bs_param_unc_names(const bs_model *model) { (void)model; return FREE_NAMES; }

PUBLIC int bs_param_num(const bs_model *model, bool tp, bool gq) { (void)model; (void)tp; return gq ? ALL : COUNT; }

PUBLIC const char *bs_param_names(const bs_model *model, bool tp, bool gq) {
  (void)model; (void)tp;
  return gq ? ALL_NAMES : NAMES;
}

/* --- the density --------------------------------------------------------------------------------------------- */

static int density(bool jacobian, const double *u, double *value, double *gradient, char **error) {
  long long status = jacobian ? @C@_density(u, value, gradient) : @C@_likelihood(u, value, gradient);
  if (status) return failed(error, "there is no density here: an operation failed (a factorization, an index, a domain)", "");
  if (isfinite(*value)) {
    int i = 0;
    while (i < DIM && isfinite(gradient[i])) i++;
    if (i == DIM) return 0;
  }
  return failed(error, "the density or its gradient is not finite here", "");
}

PUBLIC int bs_log_density_gradient(const bs_model *model, bool propto, bool jacobian, const double *u, double *value,
                                   double *gradient, char **error) {
  (void)model; (void)propto;
  return density(jacobian, u, value, gradient, error);
}

PUBLIC int bs_log_density(const bs_model *model, bool propto, bool jacobian, const double *u, double *value,
                          char **error) {
  double *gradient = malloc(DIM * sizeof *gradient);
  int status = gradient ? bs_log_density_gradient(model, propto, jacobian, u, value, gradient, error)
                        : failed(error, "out of memory", "");
  free(gradient);
  return status;
}

/* The change of the gradient along `v`, of which the largest element is 1. */
static int change(bool jacobian, const double *u, const double *v, double *found, char **error) {
  static const double steps[] = {1, -1, 2, -2}, weights[] = {8, -8, -1, 1};
  double h = 1e-3, value, *at = malloc(2 * DIM * sizeof *at), *gradient = at + DIM;
  int status = at ? 0 : failed(error, "out of memory", "");
  memset(found, 0, DIM * sizeof *found);
  for (int k = 0; k < 4 && !status; k++) {
    for (int i = 0; i < DIM; i++) at[i] = u[i] + steps[k] * h * v[i];
    status = density(jacobian, at, &value, gradient, error);
    for (int i = 0; i < DIM && !status; i++) found[i] += weights[k] * gradient[i] / (12 * h);
  }
  free(at);
  return status;
}

PUBLIC int bs_log_density_hessian(const bs_model *model, bool propto, bool jacobian, const double *u, double *value,
                                  double *gradient, double *hessian, char **error) {
  (void)model; (void)propto;
  int status = density(jacobian, u, value, gradient, error);
  double *v = calloc(DIM, sizeof *v);
  if (!v) return failed(error, "out of memory", "");
  for (int i = 0; i < DIM && !status; i++) {
    v[i] = 1;
    status = change(jacobian, u, v, hessian + (size_t)i * DIM, error);
    v[i] = 0;
  }
  free(v);
  for (size_t i = 0; i < DIM; i++)
    for (size_t j = 0; j < i; j++)
      hessian[i * DIM + j] = hessian[j * DIM + i] = 0.5 * (hessian[i * DIM + j] + hessian[j * DIM + i]);
  return status;
}

PUBLIC int bs_log_density_hessian_vector_product(const bs_model *model, bool propto, bool jacobian, const double *u,
                                                 const double *v, double *value, double *product, char **error) {
  (void)model; (void)propto;
  double top = 0;
  for (int i = 0; i < DIM; i++) top = fmax(top, fabs(v[i]));
  double *unit = malloc(2 * DIM * sizeof *unit);
  if (!unit) return failed(error, "out of memory", "");
  int status = density(jacobian, u, value, unit + DIM, error);
  for (int i = 0; i < DIM; i++) unit[i] = top > 0 ? v[i] / top : 0;
  if (!status) status = change(jacobian, u, unit, product, error);
  for (int i = 0; i < DIM; i++) product[i] *= top;
  free(unit);
  return status;
}

/* --- values ---------------------------------------------------------------------------------------------------- */

PUBLIC int bs_param_constrain(const bs_model *model, bool tp, bool gq, const double *u, double *values, bs_rng *rng,
                              char **error) {
  (void)model; (void)tp; (void)rng;
  double *found = malloc(ALL * sizeof *found);
  if (!found) return failed(error, "out of memory", "");
  long long status = gq ? @C@_generated(u, found) : @C@_values(u, found);
  for (int i = 0; i < (gq ? ALL : COUNT) && !status; i++) values[i] = found[PLACES[i]];
  free(found);
  return status ? failed(error, "there are no values here: an operation failed (a factorization, an index, a domain)", "") : 0;
}

static int freed(const double *in_c_order, double *u, char **error) {
  return @C@_free(in_c_order, u) ? failed(error, "a value is outside of the set of its parameter", "") : 0;
}

PUBLIC int bs_param_unconstrain(const bs_model *model, const double *values, double *u, char **error) {
  (void)model;
  double *found = malloc(COUNT * sizeof *found);
  if (!found) return failed(error, "out of memory", "");
  for (int i = 0; i < COUNT; i++) found[PLACES[i]] = values[i];
  int status = freed(found, u, error);
  free(found);
  return status;
}

/* What follows the name of a parameter in a flat JSON object of numbers and nested arrays, or NULL. */
static const char *member(const char *json, const char *name) {
  size_t length = strlen(name);
  for (const char *p = json; (p = strchr(p, '"')); ) {
    const char *end = strchr(++p, '"');
    if (!end) return NULL;
    const char *after = end + 1 + strspn(end + 1, " \t\r\n");
    if ((size_t)(end - p) == length && !strncmp(p, name, length) && *after == ':') return after + 1;
    p = end + 1;
  }
  return NULL;
}

static int read_all(const char *json, double *found, char **error) {
  for (int k = 0; k < PARAMETERS; k++) {
    const char *p = member(json, BLOCKS[k]);
    if (!p) return failed(error, "the JSON has no parameter ", BLOCKS[k]);
    int depth = 0, count = 0;
    do {
      p += strspn(p, " \t\r\n,");
      if (*p == '[') { depth++; p++; continue; }
      if (*p == ']') { depth--; p++; continue; }
      char *end;
      double x = strtod(p, &end);
      if (end == p || count == SIZES[k]) break;
      found[count++] = x;
      p = end;
    } while (depth > 0);
    if (depth || count != SIZES[k]) return failed(error, "the JSON has other than the numbers of ", BLOCKS[k]);
    found += count;
  }
  return 0;
}

PUBLIC int bs_param_unconstrain_json(const bs_model *model, const char *json, double *u, char **error) {
  (void)model;
  double *found = malloc(COUNT * sizeof *found);
  if (!found) return failed(error, "out of memory", "");
  int status = read_all(json ? json : "", found, error);
  if (!status) status = freed(found, u, error);
  free(found);
  return status;
}

/* --- points to start from ------------------------------------------------------------------------------------------ */

PUBLIC bs_rng *bs_rng_construct(unsigned seed, char **error) {
  bs_rng *rng = malloc(sizeof *rng);
  if (rng) rng->state = seed;
  else failed(error, "out of memory", "");
  return rng;
}

PUBLIC void bs_rng_destruct(bs_rng *rng) { free(rng); }

/* SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, OOPSLA 2014): a number in [0, 1). */
static double uniform(bs_rng *rng) {
  unsigned long long z = (rng->state += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

PUBLIC int bs_param_initialize(const bs_model *model, const char *json, bs_rng *rng, double radius, int tries,
                               bool jacobian, double *u, char **error) {
  double value;
  if (json && json[strspn(json, " \t\r\n{}")]) {
    int status = bs_param_unconstrain_json(model, json, u, error);
    return status ? status : bs_log_density(model, true, jacobian, u, &value, error);
  }
  while (tries-- > 0) {
    for (int i = 0; i < DIM; i++) u[i] = radius * (2 * uniform(rng) - 1);
    if (!bs_log_density(model, true, jacobian, u, &value, NULL)) return 0;
  }
  return failed(error, "the density is finite at none of the points that were tried", "");
}
