// How a container starts: its environment, its root folder, its process.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/kubernetes/pkg/api/v1/resource"
)

const terminationMessageLimit = 4096

// waitError is why a container cannot start yet; the reason is one of a kubelet's.
type waitError struct {
	reason string
	error
}

// start runs a container. It is called with r.mu held.
func (s *standin) start(ctx context.Context, r *podRun, c *container) error {
	spec := c.spec(r.pod)
	if err := s.prepareVolumes(ctx, r); err != nil {
		return waitError{"ContainerCreating", err}
	}
	img, err := s.imageOf(spec.Image)
	if err != nil {
		return waitError{"CreateContainerConfigError", err}
	}
	env, err := s.environment(ctx, r, spec, img)
	if err != nil {
		return waitError{"CreateContainerConfigError", err}
	}
	user, err := userOf(r.pod, spec, img)
	if err != nil {
		return waitError{"CreateContainerConfigError", err}
	}
	argv := []string{}
	for _, word := range append(append([]string{}, spec.Command...), spec.Args...) {
		argv = append(argv, expand(word, env))
	}
	if len(spec.Command) == 0 {
		argv = append(append([]string{}, img.Entrypoint...), argv...)
	}
	if len(argv) == 0 {
		return waitError{"CreateContainerError", fmt.Errorf("no command specified")}
	}
	script, err := s.rootScript(r, c, img)
	if err != nil {
		return waitError{"CreateContainerError", err}
	}
	folder := spec.WorkingDir
	if folder == "" {
		folder = "/"
	}
	script += "exec chroot " + user + " \"$R\" env -i -C " + quoted(folder) + " \"$@\"\n"
	words := []string{"-c", script, "sh"}
	for _, name := range sortedKeys(env) {
		words = append(words, name+"="+env[name])
	}
	return s.launch(r, c, append(words, argv...))
}

// expand puts in $(NAME).
func expand(text string, env map[string]string) string {
	for name, value := range env {
		text = strings.ReplaceAll(text, "$("+name+")", value)
	}
	return text
}

func (s *standin) environment(ctx context.Context, r *podRun, spec *v1.Container, img image) (map[string]string, error) {
	env := map[string]string{"PATH": os.Getenv("PATH"), "HOME": "/", "HOSTNAME": hostnameOf(r.pod), "KUBERNETES_SERVICE_HOST": s.network.gateway.String(), "KUBERNETES_SERVICE_PORT": s.apiPort, "KUBERNETES_SERVICE_PORT_HTTPS": s.apiPort}
	for name, value := range img.Env {
		env[name] = value
	}
	for _, from := range spec.EnvFrom {
		var data map[string][]byte
		var err error
		if from.ConfigMapRef != nil {
			var m *v1.ConfigMap
			if m, err = s.cs.CoreV1().ConfigMaps(r.pod.Namespace).Get(ctx, from.ConfigMapRef.Name, metav1.GetOptions{}); err == nil {
				data = configData(m)
			}
		} else if from.SecretRef != nil {
			var m *v1.Secret
			if m, err = s.cs.CoreV1().Secrets(r.pod.Namespace).Get(ctx, from.SecretRef.Name, metav1.GetOptions{}); err == nil {
				data = m.Data
			}
		}
		if err != nil {
			return nil, err
		}
		for key, value := range data {
			env[from.Prefix+key] = string(value)
		}
	}
	for _, e := range spec.Env {
		value := expand(e.Value, env)
		if e.ValueFrom != nil {
			var found bool
			var err error
			if value, found, err = s.valueFrom(ctx, r, spec, e.ValueFrom); err != nil {
				return nil, err
			} else if !found {
				continue
			}
		}
		env[e.Name] = value
	}
	return env, nil
}

func (s *standin) valueFrom(ctx context.Context, r *podRun, spec *v1.Container, from *v1.EnvVarSource) (string, bool, error) {
	pick := func(data map[string][]byte, key string, optional *bool, err error) (string, bool, error) {
		may := optional != nil && *optional
		if err != nil {
			if may && apierrors.IsNotFound(err) {
				err = nil
			}
			return "", false, err
		}
		value, ok := data[key]
		if !ok && !may {
			return "", false, fmt.Errorf("couldn't find key %s in %s", key, r.pod.Namespace)
		}
		return string(value), ok, nil
	}
	switch {
	case from.FieldRef != nil:
		value, err := s.field(r, from.FieldRef.FieldPath)
		return value, true, err
	case from.ResourceFieldRef != nil:
		value, err := resourcehelper.ExtractContainerResourceValue(from.ResourceFieldRef, spec)
		return value, true, err
	case from.ConfigMapKeyRef != nil:
		m, err := s.cs.CoreV1().ConfigMaps(r.pod.Namespace).Get(ctx, from.ConfigMapKeyRef.Name, metav1.GetOptions{})
		data := map[string][]byte{}
		if err == nil {
			data = configData(m)
		}
		return pick(data, from.ConfigMapKeyRef.Key, from.ConfigMapKeyRef.Optional, err)
	case from.SecretKeyRef != nil:
		m, err := s.cs.CoreV1().Secrets(r.pod.Namespace).Get(ctx, from.SecretKeyRef.Name, metav1.GetOptions{})
		data := map[string][]byte{}
		if err == nil {
			data = m.Data
		}
		return pick(data, from.SecretKeyRef.Key, from.SecretKeyRef.Optional, err)
	}
	return "", false, nil
}

// userOf gives the options of chroot for the user and the groups of a container.
func userOf(p *v1.Pod, spec *v1.Container, img image) (string, error) {
	user, group, nonRoot := int64(0), int64(0), false
	if img.User != nil {
		user, group = *img.User, *img.User
	}
	set := func(to *int64, from *int64) {
		if from != nil {
			*to = *from
		}
	}
	var groups []string
	if c := p.Spec.SecurityContext; c != nil {
		set(&user, c.RunAsUser)
		set(&group, c.RunAsGroup)
		nonRoot = c.RunAsNonRoot != nil && *c.RunAsNonRoot
		for _, g := range c.SupplementalGroups {
			groups = append(groups, strconv.FormatInt(g, 10))
		}
		if c.FSGroup != nil {
			groups = append(groups, strconv.FormatInt(*c.FSGroup, 10))
		}
	}
	if c := spec.SecurityContext; c != nil {
		set(&user, c.RunAsUser)
		set(&group, c.RunAsGroup)
		if c.RunAsNonRoot != nil {
			nonRoot = *c.RunAsNonRoot
		}
	}
	if nonRoot && user == 0 {
		return "", fmt.Errorf("container has runAsNonRoot and image will run as root")
	}
	return fmt.Sprintf("--userspec=%d:%d --groups=%s", user, group, strings.Join(append(groups, strconv.FormatInt(group, 10)), ",")), nil
}

func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// rootScript makes the root folder of a container, in a mount namespace of its
// own: an overlay over the image, whose changes nobody else sees, a /dev and a
// /proc of its own, and the volumes. Its folder is $R.
func (s *standin) rootScript(r *podRun, c *container, img image) (string, error) {
	spec, temporary := c.spec(r.pod), filepath.Join(r.dir, "root-"+c.name)
	if err := os.MkdirAll(temporary, 0o755); err != nil {
		return "", err
	}
	c.message = filepath.Join(r.dir, fmt.Sprintf("%s-%d.message", c.name, c.restarts))
	if err := os.WriteFile(c.message, nil, 0o666); err != nil {
		return "", err
	}
	os.Chmod(c.message, 0o666)
	script := "set -e\nT=" + quoted(temporary) + "\nLOWER=" + quoted(img.Root) + "\nNAME=" + quoted(hostnameOf(r.pod)) + "\n" + rootBegin
	bind := func(from, to string, readOnly bool) error {
		place, err := img.inside(to)
		if err != nil {
			return err
		}
		script += "bind " + quoted(from) + " \"$R\"" + quoted(place) + "\n"
		if readOnly {
			script += "mount -o remount,bind,ro \"$R\"" + quoted(place) + "\n"
		}
		return nil
	}
	if img.Root == "/" {
		for _, path := range otherMounts(s.root) {
			script += "[ ! -d \"$R\"" + quoted(path) + " ] || mount --rbind " + quoted(path) + " \"$R\"" + quoted(path) + " || :\n"
		}
	}
	script += rootEnd
	if err := bind(r.hostsFile(), "/etc/hosts", false); err != nil {
		return "", err
	}
	path := spec.TerminationMessagePath
	if path == "" {
		path = "/dev/termination-log"
	}
	if err := bind(c.message, path, false); err != nil {
		return "", err
	}
	for _, to := range sortedKeys(img.Mounts) {
		if err := bind(img.Mounts[to], to, true); err != nil {
			return "", err
		}
	}
	for _, m := range spec.VolumeMounts {
		from := filepath.Join(r.volumes[m.Name], m.SubPath)
		if _, err := os.Stat(from); os.IsNotExist(err) {
			os.MkdirAll(from, 0o755)
		}
		if err := bind(from, m.MountPath, m.ReadOnly); err != nil {
			return "", err
		}
	}
	if sec := spec.SecurityContext; sec != nil && sec.ReadOnlyRootFilesystem != nil && *sec.ReadOnlyRootFilesystem {
		script += "mount -o remount,bind,ro \"$R\"\n"
	}
	return script, nil
}

const rootBegin = `mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs "$T"
mkdir "$T/upper" "$T/work" "$T/root"
mount -t overlay -o "lowerdir=$LOWER,upperdir=$T/upper,workdir=$T/work" overlay "$T/root"
R=$T/root
bind() {
  if [ -d "$1" ]; then mkdir -p "$2"; else mkdir -p "${2%/*}"; [ -e "$2" ] || : > "$2"; fi
  mount --bind "$1" "$2"
}
`

// Names come from the hosts file only; else each unknown one would wait for a name server.
const rootEnd = `mkdir -p "$R/dev" "$R/proc" "$R/sys" "$R/tmp" "$R/etc"
mount -t proc proc "$R/proc"
mount --rbind /sys "$R/sys"
mount -t tmpfs -o mode=755 tmpfs "$R/dev"
for device in null zero full random urandom tty; do : > "$R/dev/$device"; mount --bind "/dev/$device" "$R/dev/$device"; done
mkdir "$R/dev/shm" "$R/dev/pts"
mount -t tmpfs -o mode=1777,size=64m shm "$R/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$R/dev/pts"
ln -s pts/ptmx "$R/dev/ptmx"
ln -s /proc/self/fd "$R/dev/fd"
ln -s fd/0 "$R/dev/stdin"; ln -s fd/1 "$R/dev/stdout"; ln -s fd/2 "$R/dev/stderr"
rm -f "$R/etc/hosts" "$R/etc/resolv.conf" "$R/etc/nsswitch.conf" "$R/etc/hostname"
: > "$R/etc/resolv.conf"
printf 'passwd: files\ngroup: files\nshadow: files\nhosts: files\n' > "$R/etc/nsswitch.conf"
echo "$NAME" > "$R/etc/hostname"
echo "$NAME" > /proc/sys/kernel/hostname
`

// launch starts the process, which is the first one of its process namespace:
// when it ends, the others of the container end.
func (s *standin) launch(r *podRun, c *container, words []string) error {
	log, err := os.OpenFile(r.logFile(c, c.restarts), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		log.Close()
		return err
	}
	cmd := exec.Command("/bin/sh", words...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.Stdout, cmd.Stderr = writer, writer
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC}
	if r.network != nil {
		err = r.network.do(cmd.Start)
	} else {
		err = cmd.Start()
	}
	writer.Close()
	if err != nil {
		reader.Close()
		log.Close()
		return err
	}
	logged := make(chan struct{})
	go func() {
		keepLog(reader, log)
		close(logged)
	}()
	c.cmd, c.running, c.started = cmd, true, time.Now()
	go func() {
		cmd.Wait()
		<-logged
		status := cmd.ProcessState.Sys().(syscall.WaitStatus)
		r.mu.Lock()
		c.running, c.done, c.finished, c.exit = false, true, time.Now(), status.ExitStatus()
		if status.Signaled() {
			c.exit = 128 + int(status.Signal())
		}
		c.said = r.lastMessage(c)
		r.mu.Unlock()
		r.poke()
	}()
	return nil
}

func (r *podRun) logFile(c *container, start int) string {
	return filepath.Join(r.dir, fmt.Sprintf("%s-%d.log", c.name, start))
}

// lastMessage is what the container left in its termination-message file.
func (r *podRun) lastMessage(c *container) string {
	text, _ := os.ReadFile(c.message)
	if len(text) == 0 && c.exit != 0 && c.spec(r.pod).TerminationMessagePolicy == v1.TerminationMessageFallbackToLogsOnError {
		return lastWords(r.logFile(c, c.restarts))
	}
	return string(text[:min(len(text), terminationMessageLimit)])
}
