package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

// runControllerManager runs the controllers that --controllers names, and
// always two others: the launcher leaves garbage-collector-controller out of
// --controllers, because that one needs up to 30 seconds to notice a new
// CustomResourceDefinition, and namespace-controller, because that one asks the
// API server hundreds of times for each namespace that is deleted.
func runControllerManager(args []string) int {
	command := app.NewControllerManagerCommand()
	command.SetArgs(args)
	manage := command.RunE
	command.RunE = func(cmd *cobra.Command, args []string) error {
		kubeconfig, err := cmd.Flags().GetString("kubeconfig")
		if err != nil {
			return fmt.Errorf("read --kubeconfig: %w", err)
		}
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return fmt.Errorf("load --kubeconfig %q: %w", kubeconfig, err)
		}
		go func() {
			if err := runOwnControllers(cmd.Context(), config); err != nil {
				fmt.Fprintf(os.Stderr, "%v\n", err)
				os.Exit(1)
			}
		}()
		return manage(cmd, args)
	}
	return cli.Run(command)
}

// runOwnControllers runs the garbage collector until ctx ends, and the namespace controller.
func runOwnControllers(ctx context.Context, config *rest.Config) error {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 200, 400
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create metadata client: %w", err)
	}
	kinds := newKinds(ctx, metadataClient)
	if err := deleteNamespaces(ctx, config, kinds); err != nil {
		return fmt.Errorf("namespace controller: %w", err)
	}
	if err := collectGarbage(ctx, config, kinds); err != nil {
		return fmt.Errorf("garbage collector: %w", err)
	}
	return nil
}
