// What a kubelet reports of a pod.
package main

import (
	"strconv"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (c *container) term() v1.ContainerStateTerminated {
	t := v1.ContainerStateTerminated{ExitCode: int32(c.exit), StartedAt: metav1.NewTime(c.started), FinishedAt: metav1.NewTime(c.finished), Reason: "Completed", Message: c.said}
	if c.exit != 0 {
		t.Reason = "Error"
	}
	if c.oom {
		t.Reason = "OOMKilled"
	}
	return t
}

// status is what a kubelet would report.
func (r *podRun) status() v1.PodStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pod
	st := v1.PodStatus{HostIP: "127.0.0.1", HostIPs: []v1.HostIP{{IP: "127.0.0.1"}}, PodIP: r.ip, PodIPs: []v1.PodIP{{IP: r.ip}}, StartTime: &p.CreationTimestamp, ObservedGeneration: p.Generation}
	run, fail, wait := 0, 0, 0
	initialized := v1.ConditionTrue
	for _, c := range r.containers {
		cs := r.containerStatus(c)
		if c.init {
			st.InitContainerStatuses = append(st.InitContainerStatuses, cs)
			if !c.done || c.exit != 0 {
				initialized = v1.ConditionFalse
			}
		} else {
			st.ContainerStatuses = append(st.ContainerStatuses, cs)
		}
		switch {
		case c.running && !c.init:
			run++
		case c.done && c.exit != 0:
			fail++
		case !c.done:
			wait++
		}
	}
	initFailed := initialized == v1.ConditionFalse && fail > 0
	switch {
	case r.evict != "":
		st.Phase = v1.PodFailed
		st.Reason, st.Message = "Evicted", r.evict
	case initFailed:
		st.Phase = v1.PodFailed
	case run > 0 || r.mains()[0].restarts > 0:
		st.Phase = v1.PodRunning
	case wait > 0:
		st.Phase = v1.PodPending
	case fail > 0:
		st.Phase = v1.PodFailed
	default:
		st.Phase = v1.PodSucceeded
	}
	ready := v1.ConditionFalse
	if run == len(r.mains()) {
		ready = v1.ConditionTrue
	}
	st.Conditions = append([]v1.PodCondition{{Type: v1.PodInitialized, Status: initialized}, {Type: v1.ContainersReady, Status: ready}, {Type: v1.PodReady, Status: ready}}, r.otherConditions()...)
	r.phase = st.Phase
	return st
}

func (r *podRun) containerStatus(c *container) v1.ContainerStatus {
	spec := c.spec(r.pod)
	cs := v1.ContainerStatus{Name: spec.Name, Image: spec.Image, ImageID: "local/" + spec.Image, RestartCount: int32(c.restarts)}
	switch {
	case c.running:
		started := true
		cs.Ready, cs.Started = !c.init, &started
		cs.State.Running = &v1.ContainerStateRunning{StartedAt: metav1.NewTime(c.started)}
		cs.ContainerID = "standin://" + strconv.Itoa(c.cmd.Process.Pid)
		if a, has := r.alloc[spec.Name]; has {
			cs.AllocatedResources, cs.Resources = a.Requests, &a
		}
	case c.done:
		t := c.term()
		cs.State.Terminated = &t
		cs.Ready = c.init && c.exit == 0
	default:
		cs.State.Waiting = &v1.ContainerStateWaiting{Reason: c.waiting, Message: c.why}
	}
	if c.last != nil {
		cs.LastTerminationState.Terminated = c.last
	}
	return cs
}

func (r *podRun) otherConditions() (conditions []v1.PodCondition) {
	if r.deferred {
		r.wasDeferred = true
		conditions = append(conditions, v1.PodCondition{Type: v1.PodResizePending, Status: v1.ConditionTrue, Reason: v1.PodReasonDeferred, Message: "Node didn't have enough resource"})
	} else if r.wasDeferred { // the patch of a status does not remove conditions
		conditions = append(conditions, v1.PodCondition{Type: v1.PodResizePending, Status: v1.ConditionFalse})
	}
	if r.evict != "" {
		conditions = append(conditions, v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonTerminationByKubelet, Message: r.evict})
	}
	return conditions
}
