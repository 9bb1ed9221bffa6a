terraform {
  required_providers {
    coder = { source = "coder/coder" }
  }
}
data "coder_workspace" "me" {}
data "coder_workspace_owner" "me" {}
resource "terraform_data" "home" {
  input            = "coder-${data.coder_workspace.me.id}-home"
  triggers_replace = data.coder_workspace.me.id
  lifecycle {
    ignore_changes = all
  }
}
resource "terraform_data" "container" {
  count = data.coder_workspace.me.start_count
}
