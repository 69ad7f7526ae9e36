// Package deployment puts services onto machines with container engines: it compares what runs with what should run, makes a plan
// of operations that people can read, and carries it out.
//
//	d := deployment.NewDeployment(cli, spec, &deployment.RollingStrategy{})
//	plan, err := d.Plan(ctx)
//	if err != nil {
//		return err // every fault of the specification, or why there is no machine for a container
//	}
//	fmt.Print(plan.Format(nil)) // ~ replace web-k3f9a by web-x81bq on machine-1, start-first …
//	d.Progress = func(e deployment.ProgressEvent) { fmt.Println(e.MachineID, e.Status, e.Operation) }
//	_, err = d.Run(ctx) // refused if what it depends on has changed since the plan was made
//
// The values are in package api, the choice of machines in package scheduler. A [Strategy] makes plans: [RollingStrategy] replaces
// containers a few at a time, [BlueGreenStrategy] runs all new ones beside the old ones first, [CanaryStrategy] goes by percentages.
//
// # Promises of plans
//
//   - Pure: the same state and specification give the same plan, and neither is changed. When everything is as it should be, it is
//     empty.
//   - A machine that can't be seen is unknown, never empty. Containers that were last seen on it count as there, and as long as it
//     is not known what was on it, none is made in the place of those that are not seen; one on which nothing was ever put
//     (api.Machine.Untouched) has none. Volumes that are, or may be, on it are not made anew. The plan says what waits for which
//     machine. This ends when the machine is seen again, or when the operator of the cluster says that it is gone for good
//     (api.MachineGone).
//   - Nothing is moved without need: what is as it should be stays where it is. Need is a machine that is drained (api.Machine.Drain):
//     its containers are replaced by others elsewhere as those of an earlier version are, and stay as long as there is no machine for
//     them, which the plan says. What keeps new containers away (api.Machine.Unschedulable) moves none.
//   - Only what works counts as done: a container that did not become healthy yet is waited for, one that is unhealthy is replaced.
//   - Two containers never hold one port of a machine, and two versions of a service with one container never share a volume.
//   - What a plan takes that is being carried out (ports, names, new volumes) is taken for all who plan with the same client, until it
//     ends (scheduler.Reservations). Of two that take one thing the second is ErrStalePlan, and its next plan goes out of the way. What
//     others take shows in the answer of the engine: api.ErrPortTaken, api.ErrExists, api.ErrOthers. A machine whose engine did not give
//     a port that nobody is seen to hold comes last for ten minutes.
//   - A plan depends on what it looked at (scheduler.Basis): the containers of its service, the machines on which it does something with
//     their ports and names, and where its volumes are. Whatever else changes, it is carried out.
//   - A service is of the operator, the framework and the resource that the context says (api.OwnershipOf). Containers of other ones are
//     left alone, also with a service of the same name; what they hold is a reason that names them. Containers that carry a former name
//     count as the service's, and the plan says so (Plan.TakenOver): none is replaced for that.
//   - Environment variables and configs that are marked as secret are in no text, JSON or error.
//   - A job (api.ServiceModeJob) is run once. One that runs is waited for, and one that has ended with 0 is not run again; its container is the
//     record, and Deployment.Completed is for those who keep another one. One that failed is run again only in another attempt
//     (Deployment.Attempt). It is not run while it may run on a machine that can't be seen, and never moved.
//   - What its restart policy leaves ended is not started: a container that has ended with 0 works, others are in Plan.Over.
//   - A volume that is made although there is one of its name elsewhere is in the notes, with where the data are.
//
// # Promises of operations
//
//   - Each is idempotent: run again, or after a crash in its middle, it ends in the same state. What is gone already is no error.
//   - Start-first, the old container goes on until the new one works. Stop-first, nothing is taken away before the new container
//     is created from an image that is on the machine; when anything fails after that, the old one is started again.
//   - A pre-deploy hook runs after all that were left behind have ended, on whichever machine they are, and not while one may run on a
//     machine that can't be seen. Whose a container is its labels say, never its name: what is another's is neither stopped nor removed.
//   - Old containers stop in the time that their own specification gives them. A plan that is cancelled meanwhile ends when they have
//     stopped, because engines don't take it back.
//   - Cleaning up has a context of its own, so that it happens when the one of Run is cancelled.
//   - A plan that is cancelled, fails or is cut off by a crash leaves a state from which the next plan goes on.
//   - A container or hook that does not work is kept, stopped, for its log until the next attempt (api.Container.Failed); its last lines
//     are in the error.
//   - When more containers fail than Update.MaxFailurePercent, what Update.FailureAction says is done; rollback undoes all
//     that the plan did to containers. Volumes, images and what a hook did stay.
package deployment
