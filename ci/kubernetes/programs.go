//go:build programs

// Package cluster names the programs of a Kubernetes that ci/cluster builds from the Go module proxy.
package cluster

import (
	_ "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-proxy"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubectl"
	_ "k8s.io/kubernetes/cmd/kubelet"
)
