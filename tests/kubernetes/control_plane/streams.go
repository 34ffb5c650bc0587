// What the API server asks of a kubelet: logs, and the forwarding of ports.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
)

func (s *standin) serveStreams(port int) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	check(err)
	mux := http.NewServeMux()
	mux.HandleFunc("/containerLogs/", s.logs)
	mux.HandleFunc("/portForward/", s.portForward)
	server := &http.Server{Addr: fmt.Sprintf("127.0.0.1:%d", port), Handler: mux, TLSConfig: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}}
	log.Fatal(server.ListenAndServeTLS("", ""))
}

// asked finds the pod. The kubelet of a silent node does not answer: after 30
// seconds, the connection ends, as a try to connect would.
func (s *standin) asked(q *http.Request, namespace, name string) *podRun {
	s.mu.Lock()
	r := s.find(namespace, name)
	s.mu.Unlock()
	for end := time.Now().Add(30 * time.Second); r != nil && r.node.isSilent(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) || q.Context().Err() != nil {
			panic(http.ErrAbortHandler)
		}
	}
	return r
}

// portForward serves /portForward/NS/POD[/UID], as WebSocket or SPDY.
func (s *standin) portForward(w http.ResponseWriter, q *http.Request) {
	words := strings.Split(q.URL.Path, "/")
	if len(words) < 4 {
		http.NotFound(w, q)
		return
	}
	r := s.asked(q, words[2], words[3])
	if r == nil {
		http.NotFound(w, q)
		return
	}
	options, err := portforward.NewV4Options(q)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, q, forwarder{s}, words[3], string(r.pod.UID), options, 4*time.Hour, 30*time.Second, portforward.SupportedProtocols)
}

// forwarder connects streams with ports of pods.
type forwarder struct{ s *standin }

func (f forwarder) PortForward(ctx context.Context, name, uid string, port int32, stream io.ReadWriteCloser) error {
	f.s.mu.Lock()
	r := f.s.pods[types.UID(uid)]
	f.s.mu.Unlock()
	if r == nil {
		return fmt.Errorf("the pod %s is gone", name)
	}
	r.mu.Lock()
	network := r.network
	r.mu.Unlock()
	if network == nil {
		return fmt.Errorf("the pod %s does not run", name)
	}
	conn, err := network.dial(ctx, port)
	if err != nil {
		return fmt.Errorf("failed to connect to localhost:%d inside the pod %s: %w", port, name, err)
	}
	defer conn.Close()
	ended := make(chan error, 2)
	go func() {
		_, err := io.Copy(conn, patient{stream, r.node})
		conn.(*net.TCPConn).CloseWrite()
		ended <- err
	}()
	go func() {
		_, err := io.Copy(stream, patient{conn, r.node})
		stream.Close()
		ended <- err
	}()
	select {
	case err = <-ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	// The other direction gets a moment, as in containerd.
	select {
	case other := <-ended:
		if err == nil {
			err = other
		}
	case <-time.After(time.Second):
	}
	return err
}

// patient passes nothing on while the node is silent.
type patient struct {
	io.Reader
	node *node
}

func (p patient) Read(to []byte) (int, error) {
	count, err := p.Reader.Read(to)
	for p.node.isSilent() {
		time.Sleep(50 * time.Millisecond)
	}
	return count, err
}
