"""Why functions of NumPy and SciPy have no rule, by name: for error messages and for the table of coverage.

A name is written as the user writes it. `REFUSED` maps a module to groups of names; a group's key is found in `WHY`.
`PLAIN` has the functions that have no rule and need none: their results are constants, made of plain arguments, or
they change no value at all.
"""
from __future__ import annotations

from functools import cache

__all__ = ["FINAL", "PLAIN", "REFUSED", "SCIPY", "THROUGH", "WHY", "advice", "why"]

WHY: dict[str, str] = {
    "no rule yet": "write it with functions that have a rule, or compute it outside the function and pass the result "
                   "in",
    "text": "text is made of numbers that are known only when the compiled function runs; make it outside",
    "outside": "it reads or writes what lies outside the program; do that outside and pass the values in",
    "memory": "a traced value has no memory of its own; use the value itself",
    "dates": "dates and times are no real numbers; pass differences of them as floats",
    "bits": "it works on the bits of integers, through which no derivative flows; compute it outside",
    "shifts": "it works on the bits of integers; n << k is n * 2**k, and n >> k is n // 2**k",
    "no derivative": "it looks at how a float is stored and has no derivative; compute it outside",
    "matrix": "np.matrix is not supported; use arrays of two dimensions and @",
    "calls back": "compiled code would call your function with plain numbers; use scipy.integrate.quad, fixed_quad, "
                  "solve_ivp or odeint, or write the loop in NumPy",
    "splines": "use CubicSpline, PchipInterpolator, make_interp_spline, interp1d, RegularGridInterpolator or interp, "
               "or compute it outside and pass in the values",
    "statistics": "statistics and tests of samples are made for plain numbers; write what you need with np.mean and "
                  "the like, or compute it outside",
    "roots and nodes": "zeros, nodes and coefficients are made of plain numbers; compute them outside",
    "triangular forms": "the order in it and its blocks follow from rounding; use np.linalg.eigvals or eig for the "
                        "values, eigh for symmetric matrices, expm, logm, sqrtm or solve_sylvester in its place",
    "low level": "it hands out compiled code; use the functions of scipy.linalg themselves",
    "solvers": "let a function of its own call it, decorated by jitad.implicit with the equation that its result "
               "solves: the derivative is then that of the solution",
    "differences": "jitad.grad, jacobian and hessian are exact, and may be used in the function",
    "filters": "use lfilter, sosfilt, filtfilt, the convolutions, butter and its like, welch and stft of scipy.signal, "
               "gaussian_filter, correlate and map_coordinates of scipy.ndimage, or compute it outside",
    "picked samples": "it picks samples; their numbers have no derivative: compute them outside and index the signal",
    "shapes in images": "it works on truth values and labels, which have no derivative; compute it outside",
    "distances of sets": "the distance counts or decides; it has no useful derivative",
}

# Of functions without a reason of their own, by their modules.
_BY_MODULE = {"scipy.optimize": "solvers", "scipy.differentiate": "differences"}

FINAL = frozenset({"memory"})                      # refused, though there is a function that says so

REFUSED: dict[str, dict[str, str]] = {
    "numpy": {
        "text": "array2string array_repr array_str base_repr binary_repr format_float_positional "
                "format_float_scientific",
        "outside": "fromfile fromregex fromstring genfromtxt load loadtxt memmap save savetxt savez savez_compressed",
        "memory": "from_dlpack frombuffer isfortran may_share_memory nested_iters nditer require shares_memory",
        "dates": "busday_count busday_offset busdaycalendar datetime64 datetime_as_string is_busday isnat timedelta64",
        "bits": "bitwise_count gcd lcm packbits unpackbits",
        "shifts": "bitwise_left_shift bitwise_right_shift left_shift right_shift",
        "no derivative": "frexp nextafter spacing",
        "matrix": "asmatrix bmat matrix",
        "no rule yet": "recarray record",
    },
    "scipy.special": {
        "roots and nodes": """ai_zeros bei_zeros beip_zeros ber_zeros bernoulli berp_zeros bi_zeros c_roots cg_roots
            chebyc chebys chebyt chebyu ellip_harm ellip_harm_2 ellip_normal erf_zeros euler fresnel_zeros
            fresnelc_zeros fresnels_zeros gegenbauer genlaguerre h_roots he_roots hermite hermitenorm j_roots jacobi
            jn_zeros jnjnp_zeros jnp_zeros jnyn_zeros js_roots kei_zeros keip_zeros kelvin_zeros ker_zeros kerp_zeros
            l_roots la_roots laguerre legendre lmbda lqmn lqn mathieu_even_coef mathieu_odd_coef obl_cv_seq p_roots
            pbdn_seq pbdv_seq pbvv_seq pro_cv_seq ps_roots riccati_jn riccati_yn roots_chebyc roots_chebys
            roots_chebyt roots_chebyu roots_gegenbauer roots_genlaguerre roots_hermite roots_hermitenorm roots_jacobi
            roots_laguerre roots_legendre roots_sh_chebyt roots_sh_chebyu roots_sh_jacobi roots_sh_legendre s_roots
            sh_chebyt sh_chebyu sh_jacobi sh_legendre t_roots ts_roots u_roots us_roots y0_zeros y1_zeros y1p_zeros
            yn_zeros ynp_zeros""",
        "no rule yet": """agm airye assoc_legendre_p assoc_legendre_p_all bdtri bdtrik bdtrin bei beip ber berp
            besselpoly btdtria btdtrib chdtriv chndtr chndtridf chndtrinc chndtrix cosdg cotdg diric
            elliprc elliprd elliprf elliprg elliprj eval_chebyc eval_chebys eval_sh_chebyt
            eval_sh_chebyu eval_sh_jacobi eval_sh_legendre factorial2 factorialk fdtri fdtridfd
            gdtria gdtrib gdtrix h1vp h2vp hankel1 hankel1e hankel2 hankel2e hyp0f1 it2i0k0 it2j0y0
            it2struve0 itairy iti0k0 itj0y0 itmodstruve0 itstruve0 jve kei keip kelvin ker kerp
            kolmogi kolmogorov legendre_p legendre_p_all log_wright_bessel lpmv mathieu_a
            mathieu_b mathieu_cem mathieu_modcem1 mathieu_modcem2 mathieu_modsem1 mathieu_modsem2
            mathieu_sem modfresnelm modfresnelp modstruve nbdtri nbdtrik nbdtrin ncfdtr ncfdtri
            ncfdtridfd ncfdtridfn ncfdtrinc nctdtr nctdtridf nctdtrinc nctdtrit nrdtrimn nrdtrisd
            obl_ang1 obl_ang1_cv obl_cv obl_rad1 obl_rad1_cv obl_rad2 obl_rad2_cv pbdv pbvv pbwa
            pdtri pdtrik pro_ang1 pro_ang1_cv pro_cv pro_rad1 pro_rad1_cv pro_rad2 pro_rad2_cv
            radian round sindg smirnov smirnovi sph_harm_y_all sph_legendre_p sph_legendre_p_all
            stdtridf stirling2 struve tandg tklmbda wright_bessel wrightomega yve clpmn lpmn lpn""",
    },
    "scipy.linalg": {
        "low level": "find_best_blas_type get_blas_funcs get_lapack_funcs",
        "triangular forms": "ordqz qz rsf2csf schur",
        "no rule yet": """bandwidth cdf2rdf cho_solve_banded cholesky_banded clarkson_woodruff_transform cossin diagsvd
            eig_banded eigh_tridiagonal eigvals_banded expm_cond expm_frechet fiedler_companion funm
            hessenberg ishermitian issymmetric kron ldl matrix_balance null_space orth
            orthogonal_procrustes qr_delete qr_insert qr_multiply qr_update rq
            solve_continuous_are solve_discrete_are subspace_angles tri tril triu""",
    },
    "scipy.stats": {
        "statistics": """Covariance Mixture Binomial Logistic Normal Uniform abs alexandergovern anderson
            anderson_ksamp ansari barnard_exact bartlett bayes_mvs binned_statistic binned_statistic_2d
            binned_statistic_dd binomtest bootstrap boschloo_exact boxcox_normmax boxcox_normplot
            brunnermunzel bws_test chatterjeexi chi2_contingency chisquare combine_pvalues cramervonmises
            cramervonmises_2samp cumfreq describe differential_entropy directional_stats dunnett ecdf
            energy_distance epps_singleton_2samp exp expectile f_oneway false_discovery_control
            find_repeats fisher_exact fit fligner friedmanchisquare goodness_of_fit
            jarque_bera kendalltau kruskal ks_1samp ks_2samp kstat kstatvar kstest kurtosistest levene
            linregress lmoment log logrank make_distribution mannwhitneyu median_test mode
            monte_carlo_test mood multiscale_graphcorr mvsdist normaltest obrientransform order_statistic
            page_trend_test pearsonr percentileofscore permutation_test pointbiserialr poisson_means_test
            power power_divergence ppcc_max ppcc_plot probplot quantile quantile_test rankdata ranksums
            relfreq rvs_ratio_uniforms scoreatpercentile shapiro siegelslopes sigmaclip skewtest
            sobol_indices somersd spearmanr spearmanrho theilslopes tiecorrect tmax tmean tmin trim1
            trim_mean trimboth truncate tsem tstd ttest_1samp ttest_ind ttest_ind_from_stats ttest_rel
            tukey_hsd tvar wasserstein_distance wasserstein_distance_nd weightedtau wilcoxon
            yeojohnson_normmax yeojohnson_normplot rv_continuous rv_discrete rv_histogram BootstrapMethod
            CensoredData MonteCarloMethod PermutationMethod""",
    },
    "scipy.integrate": {
        "calls back": """BDF DOP853 DenseOutput LSODA OdeSolution OdeSolver RK23 RK45 Radau complex_ode cubature nsum
            ode qmc_quad quadrature romberg solve_bvp tanhsinh""",
        "no rule yet": "cumulative_simpson",
        "roots and nodes": "lebedev_rule newton_cotes",
    },
    "scipy.interpolate": {
        "splines": """AAA BPoly BarycentricInterpolator BivariateSpline CloughTocher2DInterpolator
            FloaterHormannInterpolator KroghInterpolator LSQSphereBivariateSpline NdBSpline NdPPoly Rbf
            RectSphereBivariateSpline SmoothSphereBivariateSpline approximate_taylor_polynomial
            barycentric_interpolate bisplrep generate_knots insert interp2d krogh_interpolate lagrange
            make_smoothing_spline make_splprep make_splrep pade pchip_interpolate spalde splantider splder
            splprep sproot""",
    },
    "scipy.signal": {
        "picked samples": "argrelextrema argrelmax argrelmin find_peaks "
                          "find_peaks_cwt peak_prominences peak_widths",
        "filters": """abcd_normalize band_stop_obj bessel besselap bilinear bilinear_zpk bode buttap buttord
            cheb1ap cheb1ord cheb2ap cheb2ord check_COLA check_NOLA chirp choose_conv_method
            closest_STFT_dual_window cont2discrete correlation_lags cspline1d cspline1d_eval cspline2d
            czt czt_points dbode dfreqresp dimpulse dlsim dstep ellipap ellipord envelope findfreqs
            firls firwin firwin2 firwin_2d freqresp freqs freqs_zpk freqz_sos freqz_zpk gammatone
            gauss_spline get_window group_delay hilbert2 iircomb iirdesign iirfilter iirnotch iirpeak
            impulse invres invresz istft kaiserord lombscargle lp2bp lp2bp_zpk lp2bs lp2bs_zpk lp2hp
            lp2hp_zpk lp2lp lp2lp_zpk lsim max_len_seq medfilt medfilt2d minimum_phase normalize
            order_filter place_poles qspline1d qspline1d_eval qspline2d remez residue residuez
            savgol_coeffs sawtooth sepfir2d sos2tf sos2zpk sosfreqz spline_filter square ss2tf ss2zpk
            step symiirorder1 symiirorder2 tf2sos tf2ss tf2zpk unique_roots unit_impulse vectorstrength
            wiener zoom_fft zpk2sos zpk2ss zpk2tf""",
    },
    "scipy.ndimage": {
        "shapes in images": """binary_closing binary_dilation binary_erosion binary_fill_holes binary_hit_or_miss
            binary_opening binary_propagation black_tophat distance_transform_bf distance_transform_cdt
            distance_transform_edt find_objects generate_binary_structure histogram iterate_structure
            label value_indices watershed_ift white_tophat""",
        "filters": """center_of_mass extrema fourier_ellipsoid fourier_gaussian fourier_shift fourier_uniform
            generic_filter generic_filter1d generic_gradient_magnitude generic_laplace
            geometric_transform grey_closing grey_dilation grey_erosion grey_opening
            labeled_comprehension maximum maximum_filter maximum_filter1d maximum_position mean median
            median_filter minimum minimum_filter minimum_filter1d minimum_position
            morphological_gradient morphological_laplace percentile_filter rank_filter rotate
            standard_deviation sum sum_labels variance vectorized_filter zoom""",
    },
    "scipy.spatial.distance": {
        "distances of sets": """dice directed_hausdorff hamming jaccard jensenshannon kulczynski1 rogerstanimoto
            russellrao sokalmichener sokalsneath yule""",
    },
}

# Functions that SciPy writes in Python and that are right of traced values as they are: formulas, and questions about
# types. No other function of SciPy's without a rule gets any (`jitad.trace.captures.libraries.guards`).
THROUGH: dict[str, str] = {
    "scipy.special": "assoc_laguerre",
    "scipy.linalg": "solve_circulant",
    "scipy.signal": "gausspulse sweep_poly kaiser_atten kaiser_beta",
    "scipy.sparse": "issparse isspmatrix isspmatrix_bsr isspmatrix_coo isspmatrix_csc isspmatrix_csr isspmatrix_dia "
                    "isspmatrix_dok isspmatrix_lil",
}

# Public modules of SciPy, in which users find what is defined in private ones.
SCIPY = frozenset(f"scipy.{name}" for name in """cluster.hierarchy cluster.vq constants datasets differentiate fft
    fftpack integrate interpolate io linalg linalg.blas linalg.lapack misc ndimage odr optimize signal signal.windows
    sparse sparse.csgraph sparse.linalg spatial spatial.distance spatial.transform special stats stats.contingency
    stats.mstats stats.qmc stats.sampling""".split())

PLAIN: dict[str, str] = {
    "numpy": """broadcast_shapes can_cast common_type datetime_data dtype errstate finfo frompyfunc get_include
        get_printoptions getbufsize geterr geterrcall iinfo info isdtype issubdtype iterable kaiser mask_indices
        mintypecode ndindex printoptions promote_types set_printoptions setbufsize seterr seterrcall show_config
        show_runtime test typename""",
    "numpy.linalg": "test",
    "numpy.fft": "fftfreq rfftfreq test",
    "scipy.special": "errstate geterr seterr test",
    "scipy.linalg": "dft hadamard helmert hilbert invhilbert invpascal pascal test",
    "scipy.stats": "test",
    "scipy.integrate": "test",
    "scipy.interpolate": "test",
    "scipy.spatial.distance": "is_valid_dm is_valid_y num_obs_dm num_obs_y",
}


@cache
def why(module: str, name: str) -> str | None:
    """The key of `WHY` under which a name is refused."""
    return next((key for key, names in REFUSED.get(module, {}).items() if name in names.split()), None)


def advice(qualified: str) -> str:
    """What to do instead of a function that is refused, by its whole name."""
    module, _, name = qualified.rpartition(".")
    return WHY[why(module, name) or _BY_MODULE.get(module, "no rule yet")]
