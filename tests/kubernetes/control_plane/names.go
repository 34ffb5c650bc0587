// The names of Services, in the place of cluster DNS: a hosts file for each
// pod, which is bind-mounted over its /etc/hosts and so is rewritten in place.
// A name means the pods that the Service selects, whether it is headless or
// not: no proxy is behind its cluster address.
package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// endpoint is a pod as Services see it: what the API server knows.
type endpoint struct {
	namespace, address, hostname, subdomain string
	labels                                  labels.Set
	ready                                   bool
}

func (s *standin) pokeNames() {
	select {
	case s.namesChanged <- struct{}{}:
	default:
	}
}

// keepNames rewrites the hosts files after each change.
func (s *standin) keepNames() {
	for range s.namesChanged {
		pods := s.endpoints()
		for _, r := range s.allPods() {
			if !r.node.isCut() {
				s.writeHosts(r, pods)
			}
		}
		time.Sleep(20 * time.Millisecond) // changes come in swarms
	}
}

func (s *standin) allPods() []*podRun {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*podRun
	for _, r := range s.pods {
		all = append(all, r)
	}
	return all
}

func (s *standin) endpoints() []endpoint {
	var all []endpoint
	for _, r := range s.allPods() {
		r.mu.Lock()
		p, gone := r.pod, r.orphan || r.stopped
		r.mu.Unlock()
		if gone || p.Status.PodIP == "" || p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed {
			continue
		}
		ready := false
		for _, c := range p.Status.Conditions {
			ready = ready || c.Type == v1.PodReady && c.Status == v1.ConditionTrue && p.DeletionTimestamp == nil
		}
		all = append(all, endpoint{p.Namespace, p.Status.PodIP, p.Spec.Hostname, p.Spec.Subdomain, p.Labels, ready})
	}
	return all
}

// hosts is the hosts file of a pod of the namespace.
func hosts(own, hostname, namespace, gateway string, services []*v1.Service, pods []endpoint) string {
	lines := []string{}
	add := func(address, service, in string) {
		line := fmt.Sprintf("%s\t%s.%s.svc %s.%s.svc.cluster.local %s.%s", address, service, in, service, in, service, in)
		if in == namespace {
			line += " " + service
		}
		lines = append(lines, line)
	}
	for _, service := range services {
		if service.Spec.Type == v1.ServiceTypeExternalName || len(service.Spec.Selector) == 0 {
			continue
		}
		selector := labels.SelectorFromSet(service.Spec.Selector)
		for _, p := range pods {
			if p.namespace != service.Namespace || !selector.Matches(p.labels) || !p.ready && !service.Spec.PublishNotReadyAddresses {
				continue
			}
			add(p.address, service.Name, service.Namespace)
			if p.hostname != "" && p.subdomain == service.Name {
				add(p.address, p.hostname+"."+service.Name, service.Namespace)
			}
		}
	}
	add(gateway, "kubernetes", "default")
	sort.Strings(lines)
	return "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n" + own + "\t" + hostname + "\n" + strings.Join(lines, "\n") + "\n"
}

func (s *standin) writeHosts(r *podRun, pods []endpoint) {
	services, err := s.services.List(labels.Everything())
	if err != nil {
		return
	}
	r.mu.Lock()
	text := hosts(r.ip, hostnameOf(r.pod), r.pod.Namespace, s.network.gateway.String(), services, pods)
	r.mu.Unlock()
	if err := writeInPlace(r.hostsFile(), []byte(text)); err != nil && !os.IsNotExist(err) {
		log.Printf("hosts of %s: %v", r.pod.Name, err)
	}
}

func hostnameOf(p *v1.Pod) string {
	if p.Spec.Hostname != "" {
		return p.Spec.Hostname
	}
	return p.Name
}

func (r *podRun) hostsFile() string { return filepath.Join(r.dir, "hosts") }

// writeInPlace keeps the inode, and shows a short file for no longer than it must.
func writeInPlace(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	if old, err := io.ReadAll(file); err == nil && string(old) == string(text) {
		return nil
	}
	if _, err = file.WriteAt(text, 0); err != nil {
		return err
	}
	return file.Truncate(int64(len(text)))
}
