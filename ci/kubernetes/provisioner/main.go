// Command provisioner gives volumes to a cluster of one node: each is an image on a loop device, so that it has the size
// that was asked for and an owner that only fsGroup changes, like a cloud's disk. A StorageClass's parameter fsType says
// what is on it: ext4, with its lost+found, or xfs, which can grow while it is mounted without CAP_SYS_RESOURCE.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

const name = "reprise.dev/loop"

type loops struct {
	root string
	node string
}

func (l *loops) image(volume string) string { return filepath.Join(l.root, volume+".img") }
func (l *loops) mount(volume string) string { return filepath.Join(l.root, volume) }

func run(program string, args ...string) error {
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, out)
	}
	return nil
}

func truncate(image string, bytes int64) error {
	file, err := os.OpenFile(image, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	return file.Truncate(bytes)
}

// Provision makes and mounts an image of the size that the claim asks for.
func (l *loops) Provision(_ context.Context, wanted controller.ProvisionOptions) (*corev1.PersistentVolume, controller.ProvisioningState, error) {
	size := wanted.PVC.Spec.Resources.Requests[corev1.ResourceStorage]
	image, mount := l.image(wanted.PVName), l.mount(wanted.PVName)
	make := func() error {
		if err := truncate(image, size.Value()); err != nil {
			return err
		}
		mkfs := []string{"mkfs.ext4", "-q", "-F", image}
		if wanted.StorageClass.Parameters["fsType"] == "xfs" {
			mkfs = []string{"mkfs.xfs", "-q", "-f", image}
		}
		if err := run(mkfs[0], mkfs[1:]...); err != nil {
			return err
		}
		if err := os.MkdirAll(mount, 0o755); err != nil {
			return err
		}
		return run("mount", "-o", "loop", image, mount)
	}
	if err := make(); err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	mode := corev1.PersistentVolumeFilesystem
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: wanted.PVName},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:                   wanted.PVC.Spec.AccessModes,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: size},
			PersistentVolumeReclaimPolicy: *wanted.StorageClass.ReclaimPolicy,
			VolumeMode:                    &mode,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: mount}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{
						Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{l.node},
					}},
				}},
			}},
		},
	}, controller.ProvisioningFinished, nil
}

// Delete unmounts and removes an image.
func (l *loops) Delete(_ context.Context, volume *corev1.PersistentVolume) error {
	mount := l.mount(volume.Name)
	if err := syscall.Unmount(mount, 0); err != nil && err != syscall.EINVAL && err != syscall.ENOENT {
		return fmt.Errorf("unmount %s: %w", mount, err)
	}
	if err := os.RemoveAll(mount); err != nil {
		return err
	}
	if err := os.Remove(l.image(volume.Name)); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

// grow makes a volume as large as its claim asks for, while it is in use.
func (l *loops) grow(ctx context.Context, client kubernetes.Interface, claim *corev1.PersistentVolumeClaim) error {
	wanted := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	has := claim.Status.Capacity[corev1.ResourceStorage]
	if claim.Status.Phase != corev1.ClaimBound || wanted.Cmp(has) <= 0 {
		return nil
	}
	image := l.image(claim.Spec.VolumeName)
	if _, err := os.Stat(image); err != nil {
		return nil // Somebody else's volume.
	}
	if err := truncate(image, wanted.Value()); err != nil {
		return err
	}
	device, err := exec.Command("losetup", "--noheadings", "--output", "NAME", "--associated", image).Output()
	if err != nil {
		return err
	}
	loop := strings.TrimSpace(string(device))
	if err := run("losetup", "--set-capacity", loop); err != nil {
		return err
	}
	if err := run("xfs_growfs", l.mount(claim.Spec.VolumeName)); err != nil {
		return err
	}
	capacity := fmt.Sprintf(`{"storage":%q}`, wanted.String())
	_, err = client.CoreV1().PersistentVolumes().Patch(ctx, claim.Spec.VolumeName, types.MergePatchType,
		[]byte(`{"spec":{"capacity":`+capacity+`}}`), metav1.PatchOptions{})
	if err != nil {
		return err
	}
	_, err = client.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(ctx, claim.Name, types.MergePatchType,
		[]byte(`{"status":{"capacity":`+capacity+`}}`), metav1.PatchOptions{}, "status")
	return err
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the cluster's")
	root := flag.String("root", "", "where images and mount points lie")
	node := flag.String("node", "", "the node")
	flag.Parse()
	ctx := context.Background()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		klog.Fatal(err)
	}
	config.QPS, config.Burst = 50, 100
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		klog.Fatal(err)
	}
	volumes := &loops{root: *root, node: *node}
	factory := informers.NewSharedInformerFactory(client, 0)
	_, err = factory.Core().V1().PersistentVolumeClaims().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, now any) {
			claim := now.(*corev1.PersistentVolumeClaim)
			if err := volumes.grow(ctx, client, claim); err != nil {
				klog.ErrorS(err, "cannot grow", "claim", klog.KObj(claim))
			}
		},
	})
	if err != nil {
		klog.Fatal(err)
	}
	factory.Start(ctx.Done())
	controller.NewProvisionController(ctx, client, name, volumes, controller.LeaderElection(false)).Run(ctx)
}
