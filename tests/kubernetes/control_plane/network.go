// The network of pods: a network namespace for each, with an address of its
// own. Each node has a bridge, and a cable (a pair of veths) to the bridge of
// the control plane, where the API server is. Pulling that cable cuts the node
// off: nobody sees the end of a connection. The pods of the node still reach
// each other, as on a real one.
package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// network gives out addresses. The first one of its range is the machine's own.
type network struct {
	bridge  string // its name begins the names of all our devices
	prefix  netip.Prefix
	gateway netip.Addr
	mu      sync.Mutex
	next    netip.Addr
	used    map[netip.Addr]bool
}

func newNetwork(bridge, prefix string) *network {
	p := netip.MustParsePrefix(prefix).Masked()
	gateway := p.Addr().Next()
	return &network{bridge: bridge, prefix: p, gateway: gateway, next: gateway, used: map[netip.Addr]bool{gateway: true}}
}

// take gives an address that was not used for as long as possible.
func (w *network) take() netip.Addr {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		w.next = w.next.Next()
		// The last address is for broadcasts.
		if !w.prefix.Contains(w.next.Next()) {
			w.next = w.gateway
		} else if !w.used[w.next] {
			w.used[w.next] = true
			return w.next
		}
	}
}

func (w *network) giveBack(a netip.Addr) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.used, a)
}

// ip runs commands of iproute2, one a line.
func ip(lines ...string) error {
	cmd := exec.Command("ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip: %w: %s", err, out)
	}
	return nil
}

// addNode makes the bridge and the cable of a node, unless they are there.
func (w *network) addNode(n *node) {
	n.bridge, n.cable = fmt.Sprintf("%sn%d", w.bridge, n.index), fmt.Sprintf("%st%d", w.bridge, n.index)
	other := fmt.Sprintf("%su%d", w.bridge, n.index)
	if _, err := net.InterfaceByName(n.bridge); err != nil {
		check(ip("link add "+n.bridge+" type bridge", "link set "+n.bridge+" up",
			"link add "+n.cable+" type veth peer name "+other,
			"link set "+other+" master "+n.bridge+" up"))
	}
	check(w.connect(n, true))
}

// connect plugs in the cable of a node, or pulls it.
func (w *network) connect(n *node, plugged bool) error {
	if plugged {
		return ip("link set " + n.cable + " master " + w.bridge + " up")
	}
	return ip("link set " + n.cable + " nomaster")
}

// podNetwork is the network namespace of a pod. It lives as long as it is open,
// or a process is in it.
type podNetwork struct {
	file    *os.File
	address netip.Addr
}

func (w *network) addPod(n *node) (*podNetwork, error) {
	p := &podNetwork{address: w.take()}
	err := onOwnThread(func() (err error) {
		if err = unix.Unshare(unix.CLONE_NEWNET); err == nil {
			p.file, err = os.Open("/proc/thread-self/ns/net")
		}
		return err
	})
	if err != nil {
		w.giveBack(p.address)
		return nil, err
	}
	index := p.address.As4()
	device := fmt.Sprintf("%sp%d", w.bridge, (int(index[2])<<8|int(index[3]))&0xfff)
	path := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), p.file.Fd())
	err = ip("link add "+device+" type veth peer name eth0 netns "+path, "link set "+device+" master "+n.bridge+" up")
	if err == nil {
		err = p.do(func() error {
			return ip("link set lo up", fmt.Sprintf("addr add %s/%d dev eth0", p.address, w.prefix.Bits()),
				"link set eth0 up", "route add default via "+w.gateway.String())
		})
	}
	if err != nil {
		w.removePod(p)
		return nil, err
	}
	return p, nil
}

func (w *network) removePod(p *podNetwork) {
	p.file.Close()
	w.giveBack(p.address)
}

// do runs a function in the namespace; processes that it starts are in it, and
// sockets that it opens.
func (p *podNetwork) do(f func() error) error {
	return onOwnThread(func() error {
		if err := unix.Setns(int(p.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return err
		}
		return f()
	})
}

// dial connects to a port of the pod's loopback, as a kubelet's port-forward does.
func (p *podNetwork) dial(ctx context.Context, port int32) (conn net.Conn, err error) {
	err = p.do(func() error {
		dialer := net.Dialer{Timeout: 10 * time.Second}
		conn, err = dialer.DialContext(ctx, "tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		return err
	})
	return conn, err
}

// onOwnThread: the thread ends with the goroutine, because that stays locked to
// it; so no other goroutine ever runs in a wrong namespace.
func onOwnThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- f()
	}()
	return <-done
}
