// The life of a pod on its node: its containers start, end and start again,
// and its status says so.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// container is one container of a pod, over all its starts.
type container struct {
	name      string
	index     int  // among those of its kind in the pod's specification
	init      bool // it must end well before the main ones start
	cmd       *exec.Cmd
	started   time.Time
	finished  time.Time
	running   bool
	done      bool
	waiting   string
	why       string // it waits
	exit      int
	oom       bool
	message   string // its termination-message file
	said      string // what was in it
	restarts  int
	notBefore time.Time // the next try to start it
	last      *v1.ContainerStateTerminated
}

// spec is the container in the pod's specification, which a resize changes.
func (c *container) spec(p *v1.Pod) *v1.Container {
	if c.init {
		return &p.Spec.InitContainers[c.index]
	}
	return &p.Spec.Containers[c.index]
}

// podRun is one pod while its node has it.
type podRun struct {
	mu          sync.Mutex
	pod         *v1.Pod
	node        *node
	network     *podNetwork // nil: not there yet, or it is the machine's
	ip          string
	dir         string
	containers  []*container // those of init first
	volumes     map[string]string
	tokens      map[string]*token
	stale       bool // its ConfigMaps or Secrets have changed
	wake        chan struct{}
	evict       string
	orphan      bool // its object is gone, while its node was silent
	stopped     bool
	wasDeferred bool
	deferred    bool // its resize waits for room
	phase       v1.PodPhase
	alloc       map[string]v1.ResourceRequirements
}

func newPodRun(n *node, p *v1.Pod, root string) *podRun {
	r := &podRun{pod: p, node: n, dir: filepath.Join(root, string(p.UID)), tokens: map[string]*token{}, wake: make(chan struct{}, 1), alloc: map[string]v1.ResourceRequirements{}}
	for i, c := range p.Spec.InitContainers {
		r.containers = append(r.containers, &container{name: c.Name, index: i, init: true, waiting: "PodInitializing"})
	}
	for i, c := range p.Spec.Containers {
		waiting := "ContainerCreating"
		if len(p.Spec.InitContainers) > 0 {
			waiting = "PodInitializing"
		}
		r.containers = append(r.containers, &container{name: c.Name, index: i, waiting: waiting})
	}
	return r
}

func (r *podRun) mains() []*container { return r.containers[len(r.pod.Spec.InitContainers):] }

// seen takes the newest version of a pod, and starts its life if it is new.
func (s *standin) seen(ctx context.Context, n *node, p *v1.Pod) {
	s.mu.Lock()
	r := s.pods[p.UID]
	if r == nil {
		if p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed {
			s.mu.Unlock()
			return
		}
		r = newPodRun(n, p, s.root)
		s.pods[p.UID] = r
		go s.run(ctx, r)
	}
	s.mu.Unlock()
	r.mu.Lock()
	r.pod = p
	r.mu.Unlock()
	r.poke()
	s.pokeNames()
}

func (r *podRun) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// gone: the object is away (force delete); a kubelet kills the processes, when
// it hears of it.
func (s *standin) gone(p *v1.Pod) {
	s.mu.Lock()
	r := s.pods[p.UID]
	s.mu.Unlock()
	if r != nil {
		r.mu.Lock()
		r.orphan = true
		r.mu.Unlock()
		r.poke()
		s.pokeNames()
	}
}

// forget ends a pod whose object is gone.
func (s *standin) forget(r *podRun) {
	r.killAll(syscall.SIGKILL)
	s.mu.Lock()
	delete(s.pods, r.pod.UID)
	s.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	s.removeNetwork(r)
}

// removeNetwork is called with r.mu held.
func (s *standin) removeNetwork(r *podRun) {
	if r.network != nil {
		s.network.removePod(r.network)
		r.network = nil
	}
}

// killAll sends a signal to the first process of each container, as a kubelet does.
func (r *podRun) killAll(sig syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.containers {
		if c.running {
			syscall.Kill(c.cmd.Process.Pid, sig)
		}
	}
}

// anyRunning says if a container of the pod runs.
func (r *podRun) anyRunning() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.containers {
		if c.running {
			return true
		}
	}
	return false
}

func (r *podRun) isRunning(c *container) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return c.running
}

// logOf finds a container, and the file of its last start or of the one before.
func (r *podRun) logOf(name string, previous bool) (*container, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.containers {
		if c.name != name {
			continue
		}
		start := c.restarts
		if previous || c.waiting == "CrashLoopBackOff" && !c.running && !c.done {
			start--
		}
		return c, r.logFile(c, start)
	}
	return nil, ""
}

// sandbox gives the pod its folder, its network and its hosts file. It says if they are there.
func (s *standin) sandbox(r *podRun) bool {
	if r.ip != "" {
		return true
	}
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		log.Printf("folder of %s: %v", r.pod.Name, err)
		return false
	}
	ip, network := s.network.gateway.String(), (*podNetwork)(nil)
	if !r.pod.Spec.HostNetwork {
		var err error
		if network, err = s.network.addPod(r.node); err != nil {
			log.Printf("network of %s: %v", r.pod.Name, err)
			return false
		}
		ip = network.address.String()
	}
	r.mu.Lock()
	r.ip, r.network = ip, network
	r.mu.Unlock()
	s.writeHosts(r, s.endpoints())
	return true
}

// run lives the pod's life until its object is gone.
func (s *standin) run(ctx context.Context, r *podRun) {
	var killAt time.Time
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	var pushed []byte
	for {
		select {
		case <-r.wake:
		case <-tick.C:
		}
		if r.node.isSilent() {
			continue
		}
		r.mu.Lock()
		orphan := r.orphan
		r.mu.Unlock()
		if orphan {
			s.forget(r)
			return
		}
		if !s.sandbox(r) {
			continue
		}
		deferred := s.isDeferred(r)
		r.mu.Lock()
		r.deferred = deferred
		p := r.pod
		ending := p.DeletionTimestamp != nil || r.evict != ""
		s.stepAll(ctx, r, ending)
		r.mu.Unlock()
		if ending && r.anyRunning() {
			r.end(&killAt)
		}
		pushed = s.push(ctx, r, p, pushed)
	}
}

// push reports the status if it is not what was `pushed`, and takes away the
// object of a pod that has ended. It returns what was pushed last.
func (s *standin) push(ctx context.Context, r *podRun, p *v1.Pod, pushed []byte) []byte {
	// Before the status is read: a container that ends in between must not lose its last status.
	over := !r.anyRunning()
	status, _ := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.UID}, "status": r.status()})
	if !bytes.Equal(status, pushed) {
		_, err := s.cs.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, status, metav1.PatchOptions{}, "status")
		if err == nil {
			pushed = status
		} else if !apierrors.IsNotFound(err) {
			log.Printf("status %s: %v", p.Name, err)
		}
	}
	if p.DeletionTimestamp != nil && over && bytes.Equal(status, pushed) {
		zero := int64(0)
		err := s.cs.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero, Preconditions: &metav1.Preconditions{UID: &p.UID}})
		if err == nil || apierrors.IsNotFound(err) {
			// Finalizers may hold the object; the event of its deletion ends us.
			time.Sleep(300 * time.Millisecond)
		}
	}
	return pushed
}

// stepAll does what the containers need now. It is called with r.mu held.
func (s *standin) stepAll(ctx context.Context, r *podRun, ending bool) {
	if r.volumes != nil && (r.stale || r.tokenIsOld()) && !ending {
		r.stale = false
		s.refreshVolumes(ctx, r)
	}
	for _, c := range r.containers {
		s.step(ctx, r, c, ending)
		if c.init && (!c.done || c.exit != 0) {
			return
		}
	}
	for _, c := range r.containers {
		if !c.done || r.mayRestart(c) && !ending {
			return
		}
	}
	s.removeNetwork(r)
}

// mayRestart says if a container that has ended starts again.
func (r *podRun) mayRestart(c *container) bool {
	policy := r.pod.Spec.RestartPolicy
	return policy == v1.RestartPolicyAlways && !c.init || policy != v1.RestartPolicyNever && c.exit != 0
}

// step does what a container needs now. It is called with r.mu held.
func (s *standin) step(ctx context.Context, r *podRun, c *container, ending bool) {
	spec := c.spec(r.pod)
	if !c.running && !c.done && !ending && time.Now().After(c.notBefore) {
		s.tryStart(ctx, r, c)
	}
	if c.done && !ending && r.mayRestart(c) {
		t := c.term()
		c.last = &t
		c.done, c.waiting, c.oom = false, "CrashLoopBackOff", false
		c.why = "back-off restarting failed container " + c.name
		c.restarts++
		c.notBefore = time.Now().Add(time.Second << min(c.restarts-1, 6))
	}
	if c.running && len(spec.Resources.Limits)+len(spec.Resources.Requests) > 0 && !r.deferred {
		r.alloc[spec.Name] = *spec.Resources.DeepCopy() // a resize is carried out at once
	}
}

func (s *standin) tryStart(ctx context.Context, r *podRun, c *container) {
	spec := c.spec(r.pod)
	if strings.Contains(spec.Image, "missing") {
		if c.notBefore.IsZero() {
			c.waiting, c.why = "ErrImagePull", "failed to pull image \""+spec.Image+"\": not found"
		} else {
			c.waiting, c.why = "ImagePullBackOff", "Back-off pulling image \""+spec.Image+"\""
		}
		c.notBefore = time.Now().Add(2 * time.Second)
	} else if err := s.start(ctx, r, c); err != nil {
		c.waiting, c.why = "CreateContainerError", err.Error()
		var wait waitError
		if errors.As(err, &wait) {
			c.waiting = wait.reason
		}
		if c.waiting == "ContainerCreating" {
			c.why = "" // a kubelet tells it in events only
		}
		log.Printf("start %s: %v", r.pod.Name, err)
		c.notBefore = time.Now().Add(time.Second)
	} else {
		r.alloc[spec.Name] = *spec.Resources.DeepCopy()
	}
}

// cpuOf and memoryOf are what the containers of a pod ask for together.
func cpuOf(p *v1.Pod) (sum int64) {
	for _, c := range p.Spec.Containers {
		sum += c.Resources.Requests.Cpu().MilliValue()
	}
	return sum
}

func memoryOf(p *v1.Pod) (sum int64) {
	for _, c := range p.Spec.Containers {
		sum += c.Resources.Requests.Memory().Value()
	}
	return sum
}

// isDeferred: with what the pod asks for now, its node would be too full. Only
// a resize leads there. More than the node has altogether is refused by the
// API server.
func (s *standin) isDeferred(r *podRun) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var cpu, memory int64
	for _, other := range s.pods {
		other.mu.Lock()
		if other.node == r.node && (other == r || !other.deferred) {
			cpu += cpuOf(other.pod)
			memory += memoryOf(other.pod)
		}
		other.mu.Unlock()
	}
	return cpu > s.cpu.MilliValue() || memory > s.mem.Value()
}

// end sends SIGTERM, and SIGKILL when the grace is over.
func (r *podRun) end(killAt *time.Time) {
	if !killAt.IsZero() {
		if time.Now().After(*killAt) {
			r.killAll(syscall.SIGKILL)
		}
		return
	}
	grace := int64(30)
	if r.pod.DeletionGracePeriodSeconds != nil {
		grace = *r.pod.DeletionGracePeriodSeconds
	}
	if r.evict != "" {
		grace = 0
	}
	*killAt = time.Now().Add(time.Duration(grace) * time.Second)
	r.killAll(syscall.SIGTERM)
}
