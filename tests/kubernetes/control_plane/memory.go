// Memory limits: a container whose processes together have more is killed.
package main

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
)

// watchMemory looks at the processes of containers that have a limit.
func (s *standin) watchMemory() {
	for ; ; time.Sleep(250 * time.Millisecond) {
		limited := map[string]func(int64){}
		for _, r := range s.allPods() {
			r.mu.Lock()
			for _, c := range r.containers {
				limit, ok := c.spec(r.pod).Resources.Limits[v1.ResourceMemory]
				if !c.running || c.oom || !ok || r.node.isSilent() {
					continue
				}
				limited[processNamespace(c.cmd.Process.Pid)] = func(memory int64) {
					r.mu.Lock()
					defer r.mu.Unlock()
					if memory > limit.Value() && c.running {
						c.oom = true
						syscall.Kill(c.cmd.Process.Pid, syscall.SIGKILL)
					}
				}
			}
			r.mu.Unlock()
		}
		delete(limited, "")
		if len(limited) == 0 {
			continue
		}
		memory := residentByNamespace()
		for namespace, judge := range limited {
			judge(memory[namespace])
		}
	}
}

// processNamespace is empty when the process is gone.
func processNamespace(pid int) string {
	name, _ := os.Readlink("/proc/" + strconv.Itoa(pid) + "/ns/pid")
	return name
}

// residentByNamespace is the resident memory, in bytes, of the processes of each process namespace.
func residentByNamespace() map[string]int64 {
	sum := map[string]int64{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile("/proc/" + e.Name() + "/statm")
		if words := strings.Fields(string(text)); err == nil && len(words) > 1 {
			pages, _ := strconv.ParseInt(words[1], 10, 64)
			sum[processNamespace(pid)] += pages * int64(os.Getpagesize())
		}
	}
	return sum
}
