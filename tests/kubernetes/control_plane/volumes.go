// The volumes of a pod: folders of this machine that are bind-mounted. What
// comes from ConfigMaps, Secrets and the pod itself is written as a kubelet
// does, and written again when it changes.
package main

import (
	"context"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"sort"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/fieldpath"
	volumeutil "k8s.io/kubernetes/pkg/volume/util"
)

type payload = map[string]volumeutil.FileProjection

// prepareVolumes makes the folders of all volumes, once. It is called with r.mu held.
func (s *standin) prepareVolumes(ctx context.Context, r *podRun) error {
	if r.volumes != nil {
		return nil
	}
	volumes := map[string]string{}
	for i := range r.pod.Spec.Volumes {
		v := &r.pod.Spec.Volumes[i]
		path, err := s.volume(ctx, r, v)
		if err != nil {
			return fmt.Errorf("volume %s: %w", v.Name, err)
		}
		volumes[v.Name] = path
	}
	r.volumes = volumes
	return nil
}

// refreshVolumes writes again what has changed. It is called with r.mu held.
func (s *standin) refreshVolumes(ctx context.Context, r *podRun) {
	for i := range r.pod.Spec.Volumes {
		v := &r.pod.Spec.Volumes[i]
		if v.ConfigMap != nil || v.Secret != nil || v.Projected != nil || v.DownwardAPI != nil {
			if _, err := s.volume(ctx, r, v); err != nil && !apierrors.IsNotFound(err) {
				log.Printf("volume %s of %s: %v", v.Name, r.pod.Name, err)
			}
		}
	}
}

// volume is the folder with the contents of a volume.
func (s *standin) volume(ctx context.Context, r *podRun, v *v1.Volume) (string, error) {
	dir := filepath.Join(r.dir, "volumes", v.Name)
	switch {
	case v.HostPath != nil:
		if t := v.HostPath.Type; t != nil && (*t == v1.HostPathFile || *t == v1.HostPathFileOrCreate) {
			return v.HostPath.Path, nil
		}
		return v.HostPath.Path, os.MkdirAll(v.HostPath.Path, 0o755)
	case v.PersistentVolumeClaim != nil:
		return s.claimed(ctx, r, v.PersistentVolumeClaim.ClaimName)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if v.EmptyDir != nil {
		os.Chmod(dir, 0o777)
		return dir, own(dir, r.fsGroup(), 0o660)
	}
	files, err := s.filesOf(ctx, r, v)
	if err != nil {
		return "", err
	}
	writer, err := volumeutil.NewAtomicWriter(dir, r.pod.Name)
	if err != nil {
		return "", err
	}
	return dir, writer.Write(files, func(sub string) error { return own(filepath.Join(dir, sub), r.fsGroup(), 0o440) })
}

func (r *podRun) fsGroup() *int64 {
	if c := r.pod.Spec.SecurityContext; c != nil {
		return c.FSGroup
	}
	return nil
}

// own gives everything below a folder to a group, as fsGroup does.
func own(dir string, group *int64, mode fs.FileMode) error {
	if group == nil {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err = os.Lchown(path, -1, int(*group)); err != nil || e.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		more := mode
		if e.IsDir() {
			more |= fs.ModeSetgid | 0o110
		}
		return os.Chmod(path, info.Mode()&(fs.ModePerm|fs.ModeSetgid|fs.ModeSetuid|fs.ModeSticky)|more)
	})
}

// claimed is the folder behind a claim that is bound.
func (s *standin) claimed(ctx context.Context, r *podRun, name string) (string, error) {
	c, err := s.cs.CoreV1().PersistentVolumeClaims(r.pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	if c.Spec.VolumeName == "" {
		return "", fmt.Errorf("the claim %s is not bound", name)
	}
	pv, err := s.cs.CoreV1().PersistentVolumes().Get(ctx, c.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	if pv.Spec.HostPath == nil {
		return "", fmt.Errorf("the volume %s is no hostPath", pv.Name)
	}
	if err := os.MkdirAll(pv.Spec.HostPath.Path, 0o755); err != nil {
		return "", err
	}
	return pv.Spec.HostPath.Path, own(pv.Spec.HostPath.Path, r.fsGroup(), 0o660)
}

// filesOf is what a volume of the API's contents has.
func (s *standin) filesOf(ctx context.Context, r *podRun, v *v1.Volume) (payload, error) {
	files := payload{}
	switch {
	case v.ConfigMap != nil:
		return files, s.putConfigMap(ctx, r, files, v.ConfigMap.Name, v.ConfigMap.Items, modeOf(v.ConfigMap.DefaultMode), v.ConfigMap.Optional)
	case v.Secret != nil:
		return files, s.putSecret(ctx, r, files, v.Secret.SecretName, v.Secret.Items, modeOf(v.Secret.DefaultMode), v.Secret.Optional)
	case v.DownwardAPI != nil:
		return files, s.putDownward(r, files, v.DownwardAPI.Items, modeOf(v.DownwardAPI.DefaultMode))
	case v.Projected != nil:
		mode := modeOf(v.Projected.DefaultMode)
		for _, source := range v.Projected.Sources {
			var err error
			switch {
			case source.ServiceAccountToken != nil:
				err = s.putToken(ctx, r, files, v.Name, source.ServiceAccountToken, mode)
			case source.ConfigMap != nil:
				err = s.putConfigMap(ctx, r, files, source.ConfigMap.Name, source.ConfigMap.Items, mode, source.ConfigMap.Optional)
			case source.Secret != nil:
				err = s.putSecret(ctx, r, files, source.Secret.Name, source.Secret.Items, mode, source.Secret.Optional)
			case source.DownwardAPI != nil:
				err = s.putDownward(r, files, source.DownwardAPI.Items, mode)
			}
			if err != nil {
				return nil, err
			}
		}
		return files, nil
	}
	return nil, fmt.Errorf("the stand-in has no volumes of this type")
}

func modeOf(mode *int32) int32 {
	if mode == nil {
		return 0o644
	}
	return *mode
}

// put takes all keys, or those of the items.
func put(files payload, data map[string][]byte, items []v1.KeyToPath, mode int32, optional *bool) error {
	if len(items) == 0 {
		for key, bytes := range data {
			files[key] = volumeutil.FileProjection{Data: bytes, Mode: mode}
		}
	}
	for _, item := range items {
		bytes, ok := data[item.Key]
		if !ok && (optional == nil || !*optional) {
			return fmt.Errorf("references non-existent key: %s", item.Key)
		}
		if item.Mode != nil {
			files[item.Path] = volumeutil.FileProjection{Data: bytes, Mode: *item.Mode}
		} else if ok {
			files[item.Path] = volumeutil.FileProjection{Data: bytes, Mode: mode}
		}
	}
	return nil
}

func (s *standin) putConfigMap(ctx context.Context, r *podRun, files payload, name string, items []v1.KeyToPath, mode int32, optional *bool) error {
	m, err := s.cs.CoreV1().ConfigMaps(r.pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && optional != nil && *optional {
		return nil
	} else if err != nil {
		return err
	}
	return put(files, configData(m), items, mode, optional)
}

// configData has text and binary data of a ConfigMap.
func configData(m *v1.ConfigMap) map[string][]byte {
	data := map[string][]byte{}
	for key, text := range m.Data {
		data[key] = []byte(text)
	}
	for key, bytes := range m.BinaryData {
		data[key] = bytes
	}
	return data
}

func (s *standin) putSecret(ctx context.Context, r *podRun, files payload, name string, items []v1.KeyToPath, mode int32, optional *bool) error {
	m, err := s.cs.CoreV1().Secrets(r.pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && optional != nil && *optional {
		return nil
	} else if err != nil {
		return err
	}
	return put(files, m.Data, items, mode, optional)
}

func (s *standin) putDownward(r *podRun, files payload, items []v1.DownwardAPIVolumeFile, mode int32) error {
	for _, item := range items {
		if item.FieldRef == nil {
			continue
		}
		text, err := s.field(r, item.FieldRef.FieldPath)
		if err != nil {
			return err
		}
		one := volumeutil.FileProjection{Data: []byte(text), Mode: mode}
		if item.Mode != nil {
			one.Mode = *item.Mode
		}
		files[item.Path] = one
	}
	return nil
}

// field is the value of a path of the downward API.
func (s *standin) field(r *podRun, path string) (string, error) {
	switch path {
	case "spec.nodeName":
		return r.pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return r.pod.Spec.ServiceAccountName, nil
	case "status.podIP", "status.podIPs":
		return r.ip, nil
	case "status.hostIP", "status.hostIPs":
		return "127.0.0.1", nil
	}
	return fieldpath.ExtractFieldPathAsString(r.pod, path)
}

// token is a service account's, bound to the pod.
type token struct {
	text  string
	renew time.Time // at 80 % of its life
}

// putToken asks for a new token when the last one is old.
func (s *standin) putToken(ctx context.Context, r *podRun, files payload, volume string, t *v1.ServiceAccountTokenProjection, mode int32) error {
	key := volume + "/" + t.Path
	if r.tokens[key] == nil || time.Now().After(r.tokens[key].renew) {
		p, seconds := r.pod, int64(3607)
		if t.ExpirationSeconds != nil {
			seconds = *t.ExpirationSeconds
		}
		ask := &authv1.TokenRequest{Spec: authv1.TokenRequestSpec{ExpirationSeconds: &seconds, BoundObjectRef: &authv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID}}}
		if t.Audience != "" {
			ask.Spec.Audiences = []string{t.Audience}
		}
		out, err := s.cs.CoreV1().ServiceAccounts(p.Namespace).CreateToken(ctx, p.Spec.ServiceAccountName, ask, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		r.tokens[key] = &token{out.Status.Token, time.Now().Add(time.Until(out.Status.ExpirationTimestamp.Time) * 8 / 10)}
	}
	one := volumeutil.FileProjection{Data: []byte(r.tokens[key].text), Mode: mode}
	// As a kubelet does: readable only by those who should.
	if c := r.pod.Spec.SecurityContext; c != nil && (c.RunAsUser != nil || c.FSGroup != nil) {
		one.Mode, one.FsUser = 0o600, c.RunAsUser
	}
	files[t.Path] = one
	return nil
}

// tokenIsOld says if a token is due. It is called with r.mu held.
func (r *podRun) tokenIsOld() bool {
	for _, t := range r.tokens {
		if time.Now().After(t.renew) {
			return true
		}
	}
	return false
}

// uses says if a volume of the pod comes from this ConfigMap or Secret.
func (r *podRun) uses(secret bool, namespace, name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pod.Namespace != namespace {
		return false
	}
	for _, v := range r.pod.Spec.Volumes {
		if !secret && v.ConfigMap != nil && v.ConfigMap.Name == name || secret && v.Secret != nil && v.Secret.SecretName == name {
			return true
		}
		if v.Projected == nil {
			continue
		}
		for _, p := range v.Projected.Sources {
			if !secret && p.ConfigMap != nil && p.ConfigMap.Name == name || secret && p.Secret != nil && p.Secret.Name == name {
				return true
			}
		}
	}
	return false
}

func sortedKeys[T any](m map[string]T) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}
