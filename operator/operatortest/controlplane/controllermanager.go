package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

// runControllerManager runs the controllers that --controllers names, and the
// garbage collector always: the launcher leaves garbage-collector-controller
// out of --controllers, because that one needs up to 30 seconds to notice a
// new CustomResourceDefinition.
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
			if err := collectGarbage(context.Background(), config); err != nil {
				fmt.Fprintf(os.Stderr, "garbage collector: %v\n", err)
				os.Exit(1)
			}
		}()
		return manage(cmd, args)
	}
	return cli.Run(command)
}
