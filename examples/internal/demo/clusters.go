package demo

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// startClusters starts the control planes of Story.Clusters side by side. It returns those that run, also with an error.
func startClusters(ctx context.Context, story Story, progress io.Writer) (map[string]*operatortest.Instance, error) {
	started := make([]*operatortest.Instance, len(story.Clusters))
	starting, ctx := errgroup.WithContext(ctx)
	for i, name := range story.Clusters {
		starting.Go(func() (err error) {
			started[i], err = operatortest.Run(ctx, operatortest.Config{Progress: progress, Controllers: story.Controllers})
			if err != nil {
				return fmt.Errorf("cluster %s: %w", name, err)
			}
			return nil
		})
	}
	err := starting.Wait()
	clusters := map[string]*operatortest.Instance{}
	for i, name := range story.Clusters {
		if started[i] != nil {
			clusters[name] = started[i]
		}
	}
	return clusters, err
}

// stopClusters stops them side by side.
func stopClusters(clusters map[string]*operatortest.Instance) error {
	ended := make(chan error, len(clusters))
	for _, cluster := range clusters {
		go func() { ended <- cluster.Stop(context.Background()) }()
	}
	var errs []error
	for range clusters {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}

// addContexts makes the clusters contexts of a kubeconfig, by their names.
func addContexts(kubeconfig string, clusters map[string]*operatortest.Instance) error {
	all, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return fmt.Errorf("load kubeconfig %s: %w", kubeconfig, err)
	}
	for name, cluster := range clusters {
		one, err := clientcmd.LoadFromFile(cluster.Kubeconfig())
		if err != nil {
			return fmt.Errorf("load the kubeconfig of cluster %s: %w", name, err)
		}
		current := one.Contexts[one.CurrentContext]
		all.Clusters[name], all.AuthInfos[name] = one.Clusters[current.Cluster], one.AuthInfos[current.AuthInfo]
		current.Cluster, current.AuthInfo = name, name
		all.Contexts[name] = current
	}
	if err := clientcmd.WriteToFile(*all, kubeconfig); err != nil {
		return fmt.Errorf("write kubeconfig %s: %w", kubeconfig, err)
	}
	return nil
}
