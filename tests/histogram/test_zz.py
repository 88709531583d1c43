import numpy as np, pytest, math
import gpualgo as ga
def test_a(cuda):
    xp=cuda.xp
    rng=np.random.default_rng(0)
    x=rng.random(3001).astype('f4'); y=rng.integers(-100,100,3001).astype('i1')
    got=ga.histogram((xp.asarray(x),xp.asarray(y)),(7,[-50,0,20]),((0,1),None))
    want=np.histogramdd((x.astype(float),y.astype(float)),[np.linspace(0,1,8),[-50,0,20]])[0]
    assert (xp.asnumpy(got)==want).all()
def test_b(cuda):
    xp=cuda.xp
    rng=np.random.default_rng(0)
    x=rng.random(3001).astype('f4')
    for dt in ('f4','f8','i4','f2','c8'):
        w=(rng.standard_normal(3001)*np.exp2(rng.integers(-20,9,3001))).astype(dt)
        got=xp.asnumpy(ga.histogram(xp.asarray(x),7,(0,1),weights=xp.asarray(w)))
        with ga.default_device("cpu"):
            want=ga.histogram(x,7,(0,1),weights=w)
        assert got.dtype==want.dtype
        assert (got==want).all(), (dt, got, want)
