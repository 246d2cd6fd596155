"""What random programs are made of. Holes: ``<A>`` a float array or number, ``<V>`` one with a dimension at least,
``<M>`` with two, ``<I>`` whole numbers, ``<C>`` a number, ``<T>`` a condition, ``<AX>`` an axis, ``<N>`` a digit."""
from __future__ import annotations

UNARY = """np.sin(<A>)|np.tanh(<A>)|np.exp(-<A> ** 2)|np.log1p(<A> ** 2)|np.sqrt(1.0 + <A> * <A>)|-<A>|np.abs(<A>)
np.arctan(<A>)|np.square(<A>)|np.cbrt(1.5 + np.cos(<A>))|np.logaddexp(<A>, 0)|np.maximum(<A>, <C>)
np.minimum(<A>, <A>)|np.sign(<A>) * <A>|np.clip(<A>, -0.5, 0.8)|np.hypot(<A>, 1.0)|np.arctan2(<A>, 1.0 + <A> ** 2)
<A>.astype(float)|np.expm1(-np.abs(<A>))|np.where(<A> {gt} <C>, <A>, <C>)
np.where(<A> {gt} 0, np.log(np.abs(<A>) + 1e-3), 0.0)|np.heaviside(<A>, 0.5) * <A>|np.floor(<A>) + <A>
np.mod(<A>, 1.5)|np.float_power(np.abs(<A>) + 0.1, <C>)"""

BINARY = """<A> + <A>|<A> - <A>|<A> * <A>|<A> / (1.5 + np.cos(<A>))|<A> * <C>|<C> - <A>|<A> ** 2
<C> / (2.5 + <A> ** 2)|np.multiply(<A>, <A>)|np.add(<A>, <C>)|<A> + weights[:<N>].sum()|table * 0.5 + <C>|<A> @ <A>
np.dot(<V>, <V>)|np.outer(<V>, <V>)[:3, :4]|np.matmul(<M>, <V>)|np.einsum('ij,ij->i', <M>, <M>)
np.einsum('ij,j', <M>, <V>)|np.inner(<V>, <V>)|np.tensordot(<M>, <M>, axes=([0], [0]))|np.kron(<V>[:2], <V>[:3])
np.vdot(<V>, <V>)|<A> if <T> else <A>|(<A> {gt} <C>) * <A>|np.cross(<V>[:3], <V>[:3])|<A> // 0.7 + <A>|<A> % 0.7"""

REDUCTIONS = """np.sum(<A>, axis=<AX>)|np.mean(<A>, axis=<AX>)|np.prod(np.tanh(<A>), axis=<AX>)
np.max(<A>, axis=<AX>)|np.min(<A>)|<A>.sum()|<V>.mean(axis=0)|np.std(<A>)|np.var(<A>, axis=<AX>, ddof=1)
<V>.cumsum()|np.cumprod(np.cos(<V>))|np.sum(<V>, where=<V> {gt} <C>)|np.sum(<A>, initial=<C>)
np.max(<A>, initial=<C>)|np.sum(<A>, axis=0, keepdims=True)|np.max(<V>, where=<V> {lt} 0.5, initial=-1.0)
np.prod(<V>, where=flags[:<N>], initial=2.0)|np.ptp(<V>)|np.mean(<V>, where=<V> {lt} 2.0)|np.median(<V>)
np.quantile(<V>, 0.3)|np.nansum(<A>)|np.average(<V>)|np.linalg.norm(<V>)|np.trapezoid(<V>)|np.logaddexp.reduce(<V>)
np.maximum.accumulate(<V>)|np.add.reduceat(<V>, [0, 1])|np.count_nonzero(<V> {gt} <C>) * 0.5
np.all(<A> {lt} 3.0) * <C>|np.diff(<V>)|np.gradient(<V>)|np.nanmax(<A>)|np.sum(<A>, dtype=np.float64)
<A>.max() - <A>.min()|np.trace(<M>)|helper(<A>)|sum(<V>.ravel())|max(<V>.ravel())"""

ORDERS = """np.sort(<V>)|np.sort(<V>, axis=0)[::-1]|<V>[np.argsort(<V>, kind='stable')] if <V>.ndim == 1 else <V>
np.partition(<V>, 0)[..., 0]|<V>.ravel()[np.argmax(<V>)]|<V>.ravel()[np.argmin(np.abs(<V>))]|np.unique(<V>)
<V>[<V> {gt} <C>]|<V>[np.nonzero(<V>)]|np.searchsorted(np.sort(<V>.ravel()), <C>) * 0.1
np.interp(<A>, [-1.0, 0.0, 2.0], [0.3, -0.4, 0.9])|np.argsort(<V>, kind='stable') * 0.25
np.take_along_axis(<V>, np.argsort(<V>, axis=0, kind='stable'), axis=0)|np.digitize(<A>, [-0.5, 0.5]) * <A>|np.flip(<V>)
np.compress(<V>.ravel() {gt} 0, <V>.ravel())|np.extract(<V> {lt} <C>, <V>)|np.lexsort((<V>,)) * 0.1"""

SHAPES = """<V>[::-1]|<V>.T|<A>.ravel()|<A>.reshape(-1)|np.reshape(<V>, (-1, 1))|<V>[None]|np.squeeze(<V>[None])
np.roll(<V>, 2)|np.concatenate([<V>, <V>])|np.stack([<V>, 2 * <V>])|np.hstack([<V>, <V>])|np.vstack([<V>, <V>])
np.tile(<V>, 2)|np.repeat(<V>, 2)|np.broadcast_to(<A>, (2, *np.shape(<A>)))|np.pad(<V>, 1)
np.pad(<V>, 1, mode='edge')|np.tril(<M>)|np.diag(<V>)|np.diagonal(<M>)|np.split(<V>, [1])[1]
np.array_split(<V>, 2)[0]|np.swapaxes(<M>, 0, 1)|np.rot90(<M>)|np.array([<A>, <A>])|np.array([<V>[0], <C>])
np.full_like(<A>, <C>) + <A>|np.zeros_like(<A>)|np.atleast_1d(<A>)|np.ones(3) * <A>|np.arange(4.0) * <V>[0]
np.eye(3) + <M>[:3, :3]|np.zeros((2, 3)) + <C>|<V>.copy()|np.empty((0, 3))|np.triu(<M>, 1)|np.expand_dims(<A>, 0)
np.moveaxis(<M>, 0, -1)|np.append(<V>, <C>)|np.delete(<V>, 0, axis=0)|np.insert(<V>, 1, <C>, axis=0)|np.flipud(<M>)
np.meshgrid(<V>, weights)[0]|np.convolve(<V>, [0.5, 0.25])|np.ascontiguousarray(<V>[::2])|np.float64(<C>) * <A>
np.asarray(<A>)|<A>.mean().reshape(())|<V>[:0]|<V>[...]"""

CODE = """[np.sin(v) for v in <V>][0]|np.array([v * 0.5 for v in <V>])|sum(p.sum() for p in pieces(<V>))
Pair(<A>, <C>).first * 0.3|(lambda u: u * offset)(<A>)|Scale(<C>).apply(<A>)|Scale.bend(<A>)
{'k': <A>, 'm': <C>}['k'] * 0.5|[<A>, <A>][<N> % 2] + 0.0|list(map(np.tanh, [<A>, <A>]))[1]
np.array([u for u, w in zip(<V>, weights)])|guarded(<A>)|math.tanh(<A>)|math.cos(<A>)|abs(<A>)|float(<C>) * <A>
max(<A>, <C>)|min(<A>, <A>)|round(<C>) * <A>|int(<C>) * <A>|dict(a=<A>).get('a') * 1.5
np.array([<A>, <A>]).sum(axis=0)|(<A>, <A>)[0] * 2.0|np.vectorize(lambda t: t * t if t {gt} 0 else -t)(<V>)
next(iter(pieces(<A>))) + 0.0|np.apply_along_axis(np.sum, 0, <V>)|Scale(0.5).total + <A>|np.linalg.det(<M>[:2, :2])
np.linalg.solve(np.eye(3) * 3.0 + <M>[:3, :3], <V>[:3])|np.linalg.inv(np.eye(2) * 4.0 + <M>[:2, :2])
np.linalg.eigvalsh(gram(<M>))[-1]|np.linalg.svd(<M>, compute_uv=False)[0]
np.linalg.cholesky(gram(<M>) + 2.0 * np.eye(3))"""

WHOLE = """np.arange(4)|np.argmax(<V>)|np.argsort(<V>, kind='stable')|len(<V>)|np.int64(<N>)|(<V> {gt} 0).sum()
order[::-1]|<I> + 1|<I> % 3|np.searchsorted([-1.0, 0.0, 1.0], <A>)|np.count_nonzero(<V> {gt} <C>)|np.cumsum(order)
<I> // 2|np.round(<A>).astype(int)"""



def _split(*texts: str) -> list[str]:
    return [phrase for text in texts for phrase in text.replace("\n", "|").split("|")]


PICKS = _split(CODE, WHOLE)
PHRASES = _split(UNARY, BINARY, REDUCTIONS, ORDERS, SHAPES)

EFFECTS = ["{a}[{i}] = <C>", "{a}[{i}] = <A>", "{a}[{i}] += <A>", "{a}[{i}] *= 0.5", "{a} += <A>", "{a} *= <C>",
           "{a} -= 0.5 * <A>", "{a}[{a} {gt} <C>] = <C>", "{a}[{a} {lt} 0] *= -0.5", "{a}[...] = <A>", "{a}.fill(0.25)",
           "np.copyto({a}, 0.5 * <A>)", "{a}[{i}] = np.sort({a}[{i}])", "np.add.at({a}, 0, <C>)", "{a}.sort()",
           "np.fill_diagonal({a}, <C>)", "np.put({a}, [0], <C>)", "{a}[::-1] += {a}", "{a}[1:] = {a}[:-1]"]
