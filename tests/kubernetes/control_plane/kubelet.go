// A stand-in kubelet: it registers nodes, renews their leases, and runs the
// containers of the pods of its nodes as processes of this machine, in
// namespaces of their own. It reports statuses as a kubelet does.
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	coordv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// standin is all nodes of one process. Lock order: standin.mu, then podRun.mu.
type standin struct {
	cs           kubernetes.Interface
	root         string
	nodes        map[string]*node
	cpu, mem     resource.Quantity // of each node
	apiPort      string
	leaseSec     int
	port         int
	images       string // the file that says what images are
	network      *network
	services     corelisters.ServiceLister
	namesChanged chan struct{}
	mu           sync.Mutex
	pods         map[types.UID]*podRun
}

type node struct {
	name          string
	index         int
	bridge, cable string
	lost          atomic.Bool // no leases, no status, no reaction; processes go on
	cut           atomic.Bool // and nothing passes between its pods and others
}

func (n *node) isCut() bool    { return n.cut.Load() }
func (n *node) isSilent() bool { return n.lost.Load() || n.cut.Load() }

func kubeletMain(args []string) {
	fs := flag.NewFlagSet("kubelet", flag.ExitOnError)
	kc := fs.String("kubeconfig", "", "how to reach the API server")
	nodes := fs.String("nodes", "n1", "names of the nodes, with commas")
	cpu := fs.String("cpu", "4", "CPUs of each node")
	mem := fs.String("memory", "8Gi", "memory of each node")
	root := fs.String("root", "run/kubelet", "folder of volumes and logs")
	ctl := fs.String("control", "127.0.0.1:10299", "address for faults")
	port := fs.Int("port", 10250, "port for logs and port-forward, on loopback")
	lease := fs.Int("lease", 10, "seconds between two renewals of a lease")
	bridge := fs.String("bridge", "", "bridge of the pods, which has the first address of the network")
	prefix := fs.String("network", "", "addresses of the pods")
	images := fs.String("images", "", "file that says what images are (images.go)")
	fs.Parse(args)
	cfg, err := clientcmd.BuildConfigFromFlags("", *kc)
	check(err)
	cfg.QPS, cfg.Burst = 200, 400
	s := &standin{cs: kubernetes.NewForConfigOrDie(cfg), root: *root, nodes: map[string]*node{}, pods: map[types.UID]*podRun{}, leaseSec: *lease, port: *port, images: *images, network: newNetwork(*bridge, *prefix), namesChanged: make(chan struct{}, 1)}
	s.cpu, s.mem = resource.MustParse(*cpu), resource.MustParse(*mem)
	_, s.apiPort, _ = net.SplitHostPort(strings.TrimPrefix(cfg.Host, "https://"))
	ctx := context.Background()
	s.addStorageClass(ctx)
	s.watchCluster(ctx)
	for i, n := range strings.Split(*nodes, ",") {
		s.nodes[n] = &node{name: n, index: i}
		s.network.addNode(s.nodes[n])
	}
	for _, n := range s.nodes {
		s.register(ctx, n.name)
		go s.renew(ctx, n)
		s.watch(ctx, n)
	}
	go s.keepNames()
	go s.watchMemory()
	go s.serveStreams(*port)
	http.HandleFunc("/", s.control)
	log.Printf("stand-in kubelet for %s, control on %s", *nodes, *ctl)
	log.Fatal(http.ListenAndServe(*ctl, nil))
}

// watchCluster follows what is not a pod of ours. It returns when all is known.
func (s *standin) watchCluster(ctx context.Context) {
	factory := informers.NewSharedInformerFactory(s.cs, 0)
	core := factory.Core().V1()
	s.services = core.Services().Lister()
	on := func(informer cache.SharedIndexInformer, changed func(any)) {
		informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: changed, UpdateFunc: func(_, o any) { changed(o) }, DeleteFunc: changed})
	}
	on(core.Services().Informer(), func(any) { s.pokeNames() })
	on(core.ConfigMaps().Informer(), func(o any) {
		if m, ok := o.(*v1.ConfigMap); ok {
			s.contentsChanged(false, m.Namespace, m.Name)
		}
	})
	on(core.Secrets().Informer(), func(o any) {
		if m, ok := o.(*v1.Secret); ok {
			s.contentsChanged(true, m.Namespace, m.Name)
		}
	})
	on(core.PersistentVolumeClaims().Informer(), func(o any) {
		if c, ok := o.(*v1.PersistentVolumeClaim); ok {
			s.provision(ctx, c)
		}
	})
	on(core.PersistentVolumes().Informer(), func(o any) {
		if v, ok := o.(*v1.PersistentVolume); ok {
			s.reclaim(ctx, v)
		}
	})
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
}

// contentsChanged makes pods write the volumes again that come from a ConfigMap or Secret.
func (s *standin) contentsChanged(secret bool, namespace, name string) {
	for _, r := range s.allPods() {
		if r.uses(secret, namespace, name) {
			r.mu.Lock()
			r.stale = true
			r.mu.Unlock()
			r.poke()
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// register makes the node, or takes the one that is there, and says that it is
// well.
func (s *standin) register(ctx context.Context, name string) {
	rl := v1.ResourceList{v1.ResourceCPU: s.cpu, v1.ResourceMemory: s.mem, v1.ResourcePods: resource.MustParse("110"), v1.ResourceEphemeralStorage: resource.MustParse("20Gi")}
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}}}
	got, err := s.cs.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		got, err = s.cs.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	}
	check(err)
	now := metav1.Now()
	got.Status.Capacity, got.Status.Allocatable = rl, rl
	got.Status.Addresses = []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "127.0.0.1"}, {Type: v1.NodeHostName, Address: name}}
	got.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(s.port)
	got.Status.NodeInfo = v1.NodeSystemInfo{KubeletVersion: "v1.37.2-standin", OperatingSystem: "linux", Architecture: "amd64"}
	got.Status.Conditions = []v1.NodeCondition{
		{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady", Message: "stand-in", LastHeartbeatTime: now, LastTransitionTime: now},
		{Type: v1.NodeMemoryPressure, Status: v1.ConditionFalse, Reason: "KubeletHasSufficientMemory", LastHeartbeatTime: now, LastTransitionTime: now},
		{Type: v1.NodeDiskPressure, Status: v1.ConditionFalse, Reason: "KubeletHasNoDiskPressure", LastHeartbeatTime: now, LastTransitionTime: now},
	}
	_, err = s.cs.CoreV1().Nodes().UpdateStatus(ctx, got, metav1.UpdateOptions{})
	check(err)
}

// renew keeps the lease, and puts Ready back when the node life-cycle
// controller had marked it Unknown.
func (s *standin) renew(ctx context.Context, n *node) {
	d := int32(s.leaseSec * 4)
	for ; ; time.Sleep(time.Duration(s.leaseSec) * time.Second) {
		if n.isSilent() {
			continue
		}
		now := metav1.NewMicroTime(time.Now())
		c := s.cs.CoordinationV1().Leases("kube-node-lease")
		l, err := c.Get(ctx, n.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			_, err = c.Create(ctx, &coordv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: n.name}, Spec: coordv1.LeaseSpec{HolderIdentity: &n.name, LeaseDurationSeconds: &d, RenewTime: &now}}, metav1.CreateOptions{})
		} else if err == nil {
			l.Spec.RenewTime = &now
			_, err = c.Update(ctx, l, metav1.UpdateOptions{})
		}
		if err != nil {
			log.Printf("lease %s: %v", n.name, err)
			continue
		}
		no, err := s.cs.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
		if err != nil {
			continue
		}
		for i := range no.Status.Conditions {
			if no.Status.Conditions[i].Type == v1.NodeReady && no.Status.Conditions[i].Status != v1.ConditionTrue {
				no.Status.Conditions[i].Status, no.Status.Conditions[i].Reason = v1.ConditionTrue, "KubeletReady"
				no.Status.Conditions[i].LastTransitionTime, no.Status.Conditions[i].LastHeartbeatTime = metav1.Now(), metav1.Now()
				s.cs.CoreV1().Nodes().UpdateStatus(ctx, no, metav1.UpdateOptions{})
			}
		}
	}
}

// watch follows the pods that the scheduler has given to the node.
func (s *standin) watch(ctx context.Context, n *node) {
	lw := cache.NewListWatchFromClient(s.cs.CoreV1().RESTClient(), "pods", "", fields.OneTermEqualSelector("spec.nodeName", n.name))
	_, c := cache.NewInformerWithOptions(cache.InformerOptions{ListerWatcher: lw, ObjectType: &v1.Pod{}, Handler: cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { s.seen(ctx, n, o.(*v1.Pod)) },
		UpdateFunc: func(_, o any) { s.seen(ctx, n, o.(*v1.Pod)) },
		DeleteFunc: func(o any) {
			if d, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = d.Obj
			}
			s.gone(o.(*v1.Pod))
		},
	}})
	go c.Run(ctx.Done())
}
