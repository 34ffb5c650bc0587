// Claims of the storage class "standard" get a folder of this machine each, as
// from a provisioner of a cluster; all nodes see it, so ReadWriteMany works.
package main

import (
	"context"
	"log"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	storageClass = "standard"
	provisioner  = "muster.test/folder"
)

// addStorageClass makes the class, which is the default.
func (s *standin) addStorageClass(ctx context.Context) {
	reclaim, binding := v1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate
	_, err := s.cs.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{Name: storageClass, Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		Provisioner: provisioner, ReclaimPolicy: &reclaim, VolumeBindingMode: &binding}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		log.Printf("storage class: %v", err)
	}
}

// provision makes a volume for a claim that waits for one; the controllers bind it.
func (s *standin) provision(ctx context.Context, c *v1.PersistentVolumeClaim) {
	if c.Spec.VolumeName != "" || c.DeletionTimestamp != nil || c.Spec.StorageClassName == nil || *c.Spec.StorageClassName != storageClass {
		return
	}
	name := "pvc-" + string(c.UID)
	folder, err := filepath.Abs(filepath.Join(s.root, "claims", name))
	if err != nil || os.MkdirAll(folder, 0o755) != nil {
		log.Printf("no folder for the claim %s", c.Name)
		return
	}
	_, err = s.cs.CoreV1().PersistentVolumes().Create(ctx, &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": provisioner}},
		Spec: v1.PersistentVolumeSpec{
			Capacity: v1.ResourceList{v1.ResourceStorage: c.Spec.Resources.Requests[v1.ResourceStorage]}, AccessModes: c.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimDelete, StorageClassName: storageClass,
			ClaimRef:               &v1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: c.Namespace, Name: c.Name, UID: c.UID},
			PersistentVolumeSource: v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: folder}}}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		log.Printf("volume for the claim %s: %v", c.Name, err)
	}
}

// reclaim removes a volume whose claim is gone.
func (s *standin) reclaim(ctx context.Context, v *v1.PersistentVolume) {
	if v.Status.Phase != v1.VolumeReleased || v.Annotations["pv.kubernetes.io/provisioned-by"] != provisioner {
		return
	}
	os.RemoveAll(v.Spec.HostPath.Path)
	if err := s.cs.CoreV1().PersistentVolumes().Delete(ctx, v.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		log.Printf("volume %s: %v", v.Name, err)
	}
}
