import numpy as np, gpualgo as ga, time
from gpualgo._base import threads
print(threads.num_threads())
x=np.random.default_rng(0).random(1000000)+0.5; out=np.empty_like(x)
def go(n,k):
    x=np.random.default_rng(0).random(n)+0.5; out=np.empty_like(x)
    for _ in range(3): ga.transform(np.exp,x,out=out)
    r=[]
    for _ in range(k):
        a=time.perf_counter(); c=time.process_time(); ga.transform(np.exp,x,out=out); r.append((round((time.perf_counter()-a)*1e3,2), round((time.process_time()-c)*1e3,2)))
    print(n, sorted(r)[:6], sorted(r)[k//2])
go(1000000,30); go(4000000,10); go(400000,30); go(200000,50)
