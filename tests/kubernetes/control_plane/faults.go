// What tests ask of the stand-in: faults.
package main

import (
	"fmt"
	"net/http"
	"strings"
)

// control serves the loopback port of faults:
//
//	GET  /pods               each pod with its phase and the process of its first container
//	POST /node/NAME/lose     the node falls silent; its processes live on, and reach everyone
//	POST /node/NAME/heal
//	POST /node/NAME/cut      the same, and nothing passes between its pods and others
//	POST /node/NAME/uncut
//	POST /pod/NS/NAME/evict  as for lack of memory
func (s *standin) control(w http.ResponseWriter, q *http.Request) {
	words := strings.Split(strings.Trim(q.URL.Path, "/"), "/")
	switch {
	case words[0] == "pods":
		for _, r := range s.allPods() {
			r.mu.Lock()
			pid := 0
			if c := r.mains()[0]; c.running {
				pid = c.cmd.Process.Pid
			}
			fmt.Fprintf(w, "%s/%s %s %d\n", r.pod.Namespace, r.pod.Name, r.phase, pid)
			r.mu.Unlock()
		}
	case words[0] == "node" && len(words) == 3 && s.nodes[words[1]] != nil:
		if err := s.nodeFault(s.nodes[words[1]], words[2]); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	case words[0] == "pod" && len(words) == 4 && words[3] == "evict":
		s.mu.Lock()
		r := s.find(words[1], words[2])
		s.mu.Unlock()
		if r == nil {
			http.NotFound(w, q)
			return
		}
		r.mu.Lock()
		r.evict = "The node was low on resource: memory."
		r.mu.Unlock()
		r.poke()
	default:
		http.NotFound(w, q)
	}
}

func (s *standin) nodeFault(n *node, fault string) error {
	switch fault {
	case "lose", "heal":
		n.lost.Store(fault == "lose")
	case "cut", "uncut":
		if err := s.network.connect(n, fault == "uncut"); err != nil {
			return err
		}
		n.cut.Store(fault == "cut")
	default:
		return fmt.Errorf("no such fault: %s", fault)
	}
	if !n.isSilent() {
		s.pokeNames()
	}
	return nil
}

// find is called with s.mu held. A pod whose object is gone yields to one of the same name.
func (s *standin) find(namespace, name string) (found *podRun) {
	for _, r := range s.pods {
		r.mu.Lock()
		fits := r.pod.Namespace == namespace && r.pod.Name == name && (found == nil || !r.orphan)
		r.mu.Unlock()
		if fits {
			found = r
		}
	}
	return found
}
